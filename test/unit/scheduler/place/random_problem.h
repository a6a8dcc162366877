// Random placement problems from a seed, and exhaustive search for their solutions.
#pragma once

#include <random>

#include "scheduler/place/predict.h"

namespace dt::scheduler {

struct RandomProblem {
  uint32_t items = 10;
  // Some items have a tag, some have a kernel on one device only, some belong to groups.
  bool with_tags = true;
  bool with_limits = true;  // Memory is scarce in some of the problems.
  bool overlap = true;
};
PlacementProblem DrawProblem(uint64_t seed, const RandomProblem& kind);

// The shortest step of all placements that fit; infinite if none fits.
double LeastSeconds(const Model& model);
// Calls `see` with every placement that tags, kernels and groups allow.
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
