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

std::optional<BestEvaluation> BestOf(const DecisionState& state) {
  if (!state.best_step.has_value() || !state.best.has_value()) return std::nullopt;
  return BestEvaluation{*state.best_step, state.best_epoch, *state.best};
}

void SetBest(std::optional<BestEvaluation> best, DecisionState& state) {
  state.best_step.reset();
  state.best_epoch = 0;
  state.best.reset();
  if (!best.has_value()) return;
  state.best_step = best->step;
  state.best_epoch = best->epoch;
  state.best = std::move(best->metrics);
}

void Decisions::OnEvaluation(const LossMetrics& metrics, Step step, uint64_t epoch,
                             DecisionState& state) const {
  if (plateau_.has_value()) {
    Plateau(*plateau_, Gain(metrics, plateau_->metric, state.plateau_best), state);
  }
  if (early_stop_.has_value()) {
    const bool gain = Gain(metrics, early_stop_->metric, state.stop_best);
    state.stop_without_gain = gain ? 0 : state.stop_without_gain + 1;
    state.stopped = state.stop_without_gain >= std::max(1u, early_stop_->patience);
  }
  ConsiderBest({step, epoch, metrics}, state);
}

void Decisions::ConsiderBest(BestEvaluation evaluation, DecisionState& state) const {
  if (!keeps_best()) return;
  const std::string& metric = early_stop_.has_value() ? early_stop_->metric : plateau_->metric;
  std::optional<double> best;
  if (state.best.has_value()) best = ValueOf(*state.best, metric);
  if (Gain(evaluation.metrics, metric, best)) SetBest(std::move(evaluation), state);
}

}  // namespace dt::scheduler
