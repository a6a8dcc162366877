// Local search: from several starts, tries to move single groups, runs of groups in the order of
// the step, and connected groups, as long as one move improves the step. Effort is limited and not
// time, so that a problem always has the same answer.
#pragma once

#include "scheduler/place/timeline.h"

namespace dt::scheduler {

// A placement that the answer must not be worse than.
struct Baseline {
  std::string name;  // For example "all cpu".
  Places places;
  Prediction prediction;
};
// All on the CPU and all on the accelerator, except for items that cannot run there or are tagged
// otherwise; and the greedy completion of the tags.
std::vector<Baseline> Baselines(const Model& model);

struct SearchLimits {
  uint64_t steps = 0;     // Runs of items, all trials together.
  uint32_t restarts = 0;  // Each starts from a disturbed copy of the best placement.
};
// Returns the best placement found. It is never worse than a baseline: missing bytes count first,
// then seconds.
Places SearchPlaces(const Model& model, const std::vector<Baseline>& baselines,
                    const SearchLimits& limits);

}  // namespace dt::scheduler
