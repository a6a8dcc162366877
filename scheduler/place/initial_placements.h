// Placements to begin with.
#pragma once

#include "scheduler/place/model.h"

namespace dt::scheduler {

// Completes the user's tags in order: each item goes where it would end first, by the model and as
// far as what is kept for the job still fits there. In ties to the lower place.
Places GreedyPlaces(const Model& model);

// What a minimum cut weighs.
struct CutWeights {
  PerPlace<double> seconds = {1, 1};  // Of computing at each place, per second.
  PerPlace<double> byte = {0, 0};     // Seconds for each byte that lives at each place.
};
// The placement with the least sum of weighted computing and copying, as if nothing overlapped.
// Nothing if it takes more than `arcs_max` looks at arcs.
std::optional<Places> CutPlaces(const Model& model, const CutWeights& weights, uint64_t arcs_max);

}  // namespace dt::scheduler
