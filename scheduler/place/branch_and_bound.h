// Branch and bound: the best placement, proven, where there are few groups to place.
#pragma once

#include "scheduler/place/model.h"

namespace dt::scheduler {

struct ExactResult {
  Places places;  // The best that fits; empty if none was found that does.
  double seconds = std::numeric_limits<double>::infinity();
  // No placement that fits takes less. Infinite if it is proven that none fits.
  double lower_bound = 0;
  bool proven = false;  // All placements were looked at or ruled out.
};

// `incumbent`: a placement to beat, or empty. Stops after `steps_max` items run, with the best so
// far and a bound that still holds; with 0 only the bound of the whole problem.
ExactResult PlaceExactly(const Model& model, const Places& incumbent, uint64_t steps_max);

}  // namespace dt::scheduler
