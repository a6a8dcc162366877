// How far a job is, for the progress line.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "common/base/ids.h"

namespace dt::scheduler {

struct Progress {
  uint64_t epoch = 0, epochs = 0;  // The epoch from 0.
  Step step = 0, steps = 0;        // Of the whole job.
  uint64_t step_in_epoch = 0, steps_per_epoch = 0;
  double samples_per_second = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  // Of a recent step.
  std::string valid = "-";  // Of the last evaluation: SummaryOf its metrics.
  double seconds_left = std::numeric_limits<double>::quiet_NaN();  // If no early stop comes.
};

}  // namespace dt::scheduler
