// Explains placements in words.
#pragma once

#include "scheduler/place/model.h"
#include "scheduler/place/place_items.h"

namespace dt::scheduler {

// A reason for each item. Moves to the other place are tried until `steps_max` items have been run.
std::vector<std::string> ReasonsOf(const Model& model, const Places& places, uint64_t steps_max);
std::string SummaryOf(const Model& model, const Placement& placement);
// `nearest`: the placement that misses the least memory. `proven`: whether it is proven that
// nothing fits, or only nothing was found.
Status DoesNotFit(const Model& model, const Places& nearest, bool proven);

}  // namespace dt::scheduler
