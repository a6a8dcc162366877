// How far a job is, and how well it learns.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/metrics/metrics.h"
#include "scheduler/schedule/job_schedule.h"

namespace dt::scheduler {

struct Progress {
  uint64_t epoch = 0, epochs = 0;  // `epoch` counts from 0.
  Step step = 0, steps = 0;        // Steps of the whole job.
  uint64_t step_in_epoch = 0, steps_per_epoch = 0;
  std::optional<double> samples_per_second;  // Empty before the first steps.
  LossMeans train;                           // Means over the epoch so far.
  LossMetrics valid;                         // Results of the last evaluation on validation data.
  double learning_rate = 0;                  // Current rate of the job's optimizer.
  std::optional<double> seconds_left;        // Assumes that there is no early stop.
};

// Number of steps that are done if a worker has reported `reported`.
Step StepsDone(const JobSchedule& schedule, Step reported);
// `steps_per_second`: 0 if unknown.
Progress ProgressOf(const JobSchedule& schedule, Step reported, double steps_per_second);

// The speed of training, measured over about the last second.
class Pace {
 public:
  Pace(TimePoint begin, Step step) : at_(begin), step_(step) {}

  // Reports that `step` steps are done; call it repeatedly.
  void Update(TimePoint now, Step step);
  double steps_per_second() const { return steps_per_second_; }  // 0: not known yet.

 private:
  // Time and step of the last measurement.
  TimePoint at_;
  Step step_;
  double steps_per_second_ = 0;
};

}  // namespace dt::scheduler
