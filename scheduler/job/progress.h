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
  uint64_t epoch = 0, epochs = 0;  // The epoch from 0.
  Step step = 0, steps = 0;        // Steps of the whole job.
  uint64_t step_in_epoch = 0, steps_per_epoch = 0;
  std::optional<double> samples_per_second;  // Nothing before the first steps.
  LossMeans train;                           // Means over the epoch so far.
  LossMetrics valid;                         // The last evaluation's.
  double learning_rate = 0;                  // The job's optimizer's, as it is scaled now.
  std::optional<double> seconds_left;        // If no early stop comes.
};

// Number of steps that are done, where a worker has reported `reported`.
Step StepsDone(const JobSchedule& schedule, Step reported);
// `steps_per_second`: 0 if it is not known.
Progress ProgressOf(const JobSchedule& schedule, Step reported, double steps_per_second);

// The rate of progress over the last second or so.
class Pace {
 public:
  Pace(TimePoint begin, Step step) : at_(begin), step_(step) {}

  // So many steps are done `now`. To be called again and again.
  void Update(TimePoint now, Step step);
  double steps_per_second() const { return steps_per_second_; }  // 0: not known yet.

 private:
  // The rate was last measured then, at that step.
  TimePoint at_;
  Step step_;
  double steps_per_second_ = 0;
};

}  // namespace dt::scheduler
