// Placement problems drawn from a seed, and the slow way to solve them.
#pragma once

#include <random>

#include "scheduler/place/predict.h"

namespace dt::scheduler {

struct RandomProblem {
  uint32_t items = 10;
  bool with_tags = true;    // Some items are tagged, some have one kernel only, some go together.
  bool with_limits = true;  // Memory is scarce in some of the problems.
  bool overlap = true;
};
PlacementProblem DrawProblem(uint64_t seed, const RandomProblem& kind);

// Of all placements that fit; infinite if none does.
double LeastSeconds(const Model& model);
// Calls with every placement that tags, kernels and groups allow.
template <class See>
void ForEveryPlacement(const Model& model, See see) {
  const std::vector<uint32_t>& free = model.free_groups();
  Places places = model.AllAt(0);
  for (uint64_t bits = 0; bits < uint64_t{1} << free.size(); ++bits) {
    for (size_t f = 0; f < free.size(); ++f) {
      for (const uint32_t i : model.groups()[free[f]].items) places[i] = (bits >> f) & 1;
    }
    see(places);
  }
}

}  // namespace dt::scheduler
