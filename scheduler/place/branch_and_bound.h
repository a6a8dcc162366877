// Branch and bound: finds the best placement and proves it, if there are few groups to place.
#pragma once

#include "scheduler/place/model.h"

namespace dt::scheduler {

struct ExactResult {
  Places places;  // The best placement that fits; empty if none was found.
  double seconds = std::numeric_limits<double>::infinity();
  // No placement that fits takes less time. Infinite if it is proven that none fits.
  double lower_bound = 0;
  bool proven = false;  // All placements were tried or ruled out.
};

// `incumbent`: a placement to beat, or empty. After `steps_max` runs of items it stops with the
// best placement so far and a bound that still holds; with 0 it computes only the bound of the
// whole problem.
ExactResult PlaceExactly(const Model& model, const Places& incumbent, uint64_t steps_max);

}  // namespace dt::scheduler
