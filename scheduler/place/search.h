// Local search: from several starts, moves of groups, of runs of them in the order of the step, and
// of connected pieces, as long as one improves. Bounded by effort, not by time, so that the same
// problem has the same answer.
#pragma once

#include "scheduler/place/timeline.h"

namespace dt::scheduler {

// A placement that any answer must not be worse than.
struct Baseline {
  std::string name;  // "all cpu", …
  Places places;
  Prediction prediction;
};
// All on the CPU, all on the accelerator (what cannot be there, or is tagged otherwise, stays where
// it must be), and the greedy completion of the tags.
std::vector<Baseline> Baselines(const Model& model);

struct SearchLimits {
  uint64_t steps = 0;     // Items run, of all trials together.
  uint32_t restarts = 0;  // From a disturbed best placement.
};
// The best placement found; never worse than a baseline by missing bytes, then seconds.
Places SearchPlaces(const Model& model, const std::vector<Baseline>& baselines,
                    const SearchLimits& limits);

}  // namespace dt::scheduler
