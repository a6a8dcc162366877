// Placements in words.
#pragma once

#include "scheduler/place/model.h"
#include "scheduler/place/place_items.h"

namespace dt::scheduler {

// By item. What the other place would cost is tried until `steps_max` items have been run.
std::vector<std::string> ReasonsOf(const Model& model, const Places& places, uint64_t steps_max);
std::string SummaryOf(const Model& model, const Placement& placement);
// `nearest`: what misses the least memory. `proven`: nothing fits; otherwise nothing was found.
Status DoesNotFit(const Model& model, const Places& nearest, bool proven);

}  // namespace dt::scheduler
