#include "scheduler/schedule/decisions.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace dt::scheduler {
namespace {

// Whether `metrics` is better than `best` in the metric `name`; if so, `best` is set to its value.
bool Gain(const LossMetrics& metrics, const std::string& name, std::optional<double>& best) {
  const std::optional<double> value = ValueOf(metrics, name);
  if (!value.has_value() || std::isnan(*value)) return false;
  const bool better = !best.has_value() || (HigherIsBetter(name) ? *value > *best : *value < *best);
  if (better) best = value;
  return better;
}

void Plateau(const PlateauConfig& config, bool gain, DecisionState& state) {
  state.plateau_without_gain = gain ? 0 : state.plateau_without_gain + 1;
  if (state.plateau_without_gain <= config.patience) return;
  state.rate_scale = std::max(state.rate_scale * config.factor, config.min_scale);
  state.plateau_without_gain = 0;
}

}  // namespace

void Decisions::OnEvaluation(const LossMetrics& metrics, Step step, uint64_t epoch,
                             DecisionState& state) const {
  bool best = false;
  if (plateau_.has_value()) {
    best = Gain(metrics, plateau_->metric, state.plateau_best);
    Plateau(*plateau_, best, state);
  }
  if (early_stop_.has_value()) {
    best = Gain(metrics, early_stop_->metric, state.stop_best);
    state.stop_without_gain = best ? 0 : state.stop_without_gain + 1;
    state.stopped = state.stop_without_gain >= std::max(1u, early_stop_->patience);
  }
  if (!best) return;
  state.best_step = step;
  state.best_epoch = epoch;
  state.best = metrics;
}

}  // namespace dt::scheduler
