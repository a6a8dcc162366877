// Automatic placement: every item's place, and why it is there.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "scheduler/place/problem.h"

namespace dt::scheduler {

// Bounds of effort, not of time: the same problem has the same answer on any machine. A step is one
// item run under the model, some 10 ns.
struct PlaceLimits {
  uint32_t exact_groups = 64;         // With more groups to place, only the search.
  uint64_t exact_steps = 20'000'000;  // If they do not suffice, the best so far and a bound.
  uint64_t search_steps = 40'000'000;
  uint32_t search_restarts = 32;
  uint64_t explain_steps = 20'000'000;  // Then items have no reason but the search.
};

struct Placement {
  Places places;  // By item.
  Prediction prediction;
  double lower_bound = 0;  // Seconds: no placement that fits takes less.
  bool exact = false;      // Proven best, by the model.
  // By item, a sentence: its tag, the missing kernel, or what the other place would cost.
  std::vector<std::string> reasons;
  // What the answer is never worse than: all on one place as far as can be, and the greedy
  // completion of the tags.
  struct Alternative {
    std::string name;
    Prediction prediction;
  };
  std::vector<Alternative> alternatives;
  std::string summary;  // A line: predicted time, bound, alternatives.
};

// Error: Invalid. The tags contradict each other or the kernels, or nothing was found that fits in
// memory: how much is missing where, which items are the largest, and what would help.
Result<Placement> PlaceItems(PlacementProblem problem, const PlaceLimits& limits = {});

// "1.25 ms"
std::string TimeText(double seconds);

}  // namespace dt::scheduler
