// How far a job is, and how well it learns.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/ids.h"
#include "common/metrics/metrics.h"

namespace dt::scheduler {

struct Progress {
  uint64_t epoch = 0, epochs = 0;  // The epoch from 0.
  Step step = 0, steps = 0;        // Of the whole job.
  uint64_t step_in_epoch = 0, steps_per_epoch = 0;
  std::optional<double> samples_per_second;  // Nothing before the first steps.
  LossMeans train;                           // Over the epoch so far.
  LossMetrics valid;                         // Of the last evaluation.
  double learning_rate = 0;                  // The job's optimizer's, as it is scaled now.
  std::optional<double> seconds_left;        // If no early stop comes.
};

}  // namespace dt::scheduler
