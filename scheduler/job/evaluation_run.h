// A run that evaluates a checkpoint: loads it, evaluates once, and finishes.
#pragma once

#include <optional>

#include "scheduler/state/job_context.h"

namespace dt::scheduler {

class EvaluationRun {
 public:
  // REQUIRES: options.checkpoint is set.
  explicit EvaluationRun(JobContext& job) : job_(job) {}

  // Issues the next order, unless one is still being carried out.
  Result<RunState> HandOut();
  Status OnCompleted(TimePoint now, OrderTracker::Completed done);

  // True if there is test data; otherwise the run evaluates on the validation data.
  bool on_test_data() const { return job_.record.data.test_rows > 0; }
  const std::optional<LossMetrics>& metrics() const { return metrics_; }

 private:
  enum class Next { kLoad, kEvaluate, kFinish, kNothing };

  JobContext& job_;
  Next next_ = Next::kLoad;  // The order that is issued when the current one is done.
  std::optional<LossMetrics> metrics_;
};

}  // namespace dt::scheduler
