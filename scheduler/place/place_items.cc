#include "scheduler/place/place_items.h"

#include "scheduler/place/branch_and_bound.h"
#include "scheduler/place/reasons.h"
#include "scheduler/place/search.h"

namespace dt::scheduler {
namespace {

constexpr int kPolishRounds = 2;

// Tries single moves once more: there may be a placement as fast as the proven one that works less,
// and a search that ran out of steps may have left moves untried.
Places Polish(const Model& model, Places places, uint64_t steps_max) {
  Timeline line(model, std::move(places));
  for (int round = 0; round < kPolishRounds; ++round) {
    bool improved = false;
    for (const uint32_t g : model.free_groups()) {
      if (line.steps() > steps_max) break;
      if (line.TryFlip({&g, 1})) improved = true;
    }
    if (!improved) break;
  }
  return line.places();
}

}  // namespace

Result<Placement> PlaceItems(PlacementProblem problem, const PlaceLimits& limits) {
  DT_TRY(const Model model, Model::Make(std::move(problem)));
  const std::vector<Baseline> baselines = Baselines(model);
  Places found = SearchPlaces(model, baselines,
                              {.steps = limits.search_steps, .restarts = limits.search_restarts});
  const bool fits = Predict(model, found).fits();
  const bool few = model.free_groups().size() <= limits.exact_groups;
  const ExactResult exact =
      PlaceExactly(model, fits ? found : Places{}, few ? limits.exact_steps : 0);
  if (!exact.places.empty()) found = exact.places;
  if (!fits && exact.places.empty()) return DoesNotFit(model, found, exact.proven);

  Placement out;
  out.places = Polish(model, std::move(found), limits.explain_steps);
  out.prediction = Predict(model, out.places);
  out.lower_bound = exact.lower_bound;
  out.exact = exact.proven;
  for (const Baseline& b : baselines) out.alternatives.push_back({b.name, b.prediction});
  out.reasons = ReasonsOf(model, out.places, limits.explain_steps);
  out.summary = SummaryOf(model, out);
  return out;
}

}  // namespace dt::scheduler
