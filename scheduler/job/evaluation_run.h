// A run that evaluates a checkpoint: loads it, evaluates once, and finishes.
#pragma once

#include <optional>

#include "scheduler/job/job_context.h"

namespace dt::scheduler {

class EvaluationRun {
 public:
  // REQUIRES: the job has a checkpoint to begin with.
  explicit EvaluationRun(JobContext& job) : job_(job) {}

  // Hands out what may go out now.
  Result<RunState> HandOut();
  Status OnCompleted(TimePoint now, OrderTracker::Completed done);

  // On the test data where there is some, else on the validation data.
  bool on_test_data() const { return job_.record.data.test_rows > 0; }
  const std::optional<LossMetrics>& metrics() const { return metrics_; }

 private:
  enum class Next { kLoad, kEvaluate, kFinish, kNothing };

  JobContext& job_;
  Next next_ = Next::kLoad;  // The order that goes out when the one before is done.
  std::optional<LossMetrics> metrics_;
};

}  // namespace dt::scheduler
