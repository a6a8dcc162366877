// Placements that the search starts from.
#pragma once

#include "scheduler/place/model.h"

namespace dt::scheduler {

// Keeps the user's tags and places the other items in order: each goes where the model lets it end
// first, provided that what it keeps for the job still fits in memory there. In a tie the CPU wins.
Places GreedyPlaces(const Model& model);

// Prices of a minimum cut.
struct CutWeights {
  PerPlace<double> seconds = {1, 1};  // Factor on the seconds of computing at each place.
  PerPlace<double> byte = {0, 0};     // Seconds charged for each byte that is stored at each place.
};
// The placement with the least weighted sum of computing and copying, as if nothing overlapped.
// Empty if it takes more than `arcs_max` visits of arcs.
std::optional<Places> CutPlaces(const Model& model, const CutWeights& weights, uint64_t arcs_max);

}  // namespace dt::scheduler
