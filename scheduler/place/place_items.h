// Automatic placement: the place of every item, and the reason for it.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "scheduler/place/problem.h"

namespace dt::scheduler {

// Limits of effort and not of time, so that a problem has the same answer on every machine. A step
// is one run of an item under the model, which takes about 10 ns.
struct PlaceLimits {
  uint32_t exact_groups = 64;  // With more free groups, branch and bound is not tried.
  // On reaching it, branch and bound ends with the best placement so far and a bound.
  uint64_t exact_steps = 20'000'000;
  uint64_t search_steps = 40'000'000;
  uint32_t search_restarts = 32;
  // On reaching it, the remaining items are explained by the search only.
  uint64_t explain_steps = 20'000'000;
};

struct Placement {
  Places places;  // Indexed by item.
  Prediction prediction;
  double lower_bound = 0;  // Seconds; no placement that fits takes less.
  bool exact = false;      // Proven to be the best placement under the model.
  // A sentence for each item: its tag, the missing kernel, or what the other place would cost.
  std::vector<std::string> reasons;
  // Placements that the answer is never worse than: everything at one place as far as possible, and
  // the greedy completion of the tags.
  struct Alternative {
    std::string name;
    Prediction prediction;
  };
  std::vector<Alternative> alternatives;
  std::string summary;  // One line: predicted time, bound, alternatives.
};

// Errors: Invalid, if the tags contradict each other or the kernels, or if no placement was found
// that fits in memory; the text then says how much is missing where, which items are largest, and
// what would help.
Result<Placement> PlaceItems(PlacementProblem problem, const PlaceLimits& limits = {});

// Formats a time, for example "1.25 ms".
std::string TimeText(double seconds);

}  // namespace dt::scheduler
