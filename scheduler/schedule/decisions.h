// Decisions made from evaluations on the validation data: the scale of the learning rate, when to
// stop, and which evaluation is the best. They depend on the sequence of metrics alone.
//
//   gain       the metric is strictly better than in all evaluations before; its first value is a
//              gain, too
//   plateau    after `patience` + 1 evaluations in a row without gain the scale is multiplied by
//              `factor`, but stays at `min_scale` or above; counting starts again
//   early stop training ends after `patience` evaluations in a row without gain
//   best       the evaluation with the best value of early_stop's metric, or of plateau's if there
//              is no early_stop; of equal ones the first. One whose checkpoint was abandoned counts
//              no more
// A metric without a value (only one class, or NaN) is no gain.
#pragma once

#include <optional>

#include "common/config/job_config.h"
#include "common/metrics/metrics.h"

namespace dt::scheduler {

struct DecisionState {
  float rate_scale = 1;  // The plateau's factor on the learning rate; named as in manifests.
  uint32_t plateau_without_gain = 0;
  uint32_t stop_without_gain = 0;
  // Best values of the metrics of plateau and early_stop.
  std::optional<double> plateau_best, stop_best;
  // The best evaluation.
  std::optional<Step> best_step;
  uint64_t best_epoch = 0;  // From 1.
  std::optional<LossMetrics> best;
  bool stopped = false;
  DT_FIELDS(rate_scale, plateau_without_gain, stop_without_gain, plateau_best, stop_best, best_step,
            best_epoch, best, stopped)
  friend bool operator==(const DecisionState&, const DecisionState&) = default;
};

struct BestEvaluation {
  Step step = 0;
  uint64_t epoch = 0;
  LossMetrics metrics;
  DT_FIELDS(step, epoch, metrics)
};
std::optional<BestEvaluation> BestOf(const DecisionState& state);
void SetBest(std::optional<BestEvaluation> best, DecisionState& state);

// Whether a loss is so far above its mean at the job's first step, before any update, that the
// steps must be too large. It is compared with that step because losses have no common scale.
inline constexpr double kDivergedFactor = 10;
inline bool HasDiverged(double mean, double first) {
  return first > 0 && mean > kDivergedFactor * first;
}

class Decisions {
 public:
  Decisions(std::optional<PlateauConfig> plateau, std::optional<EarlyStopConfig> early_stop)
      : plateau_(std::move(plateau)), early_stop_(std::move(early_stop)) {}

  // Whether the checkpoint of the best evaluation is kept.
  bool keeps_best() const { return plateau_.has_value() || early_stop_.has_value(); }
  // `epoch` counts from 1.
  void OnEvaluation(const LossMetrics& metrics, Step step, uint64_t epoch,
                    DecisionState& state) const;
  // Makes it the best evaluation if it is better than the one of now.
  void ConsiderBest(BestEvaluation evaluation, DecisionState& state) const;

 private:
  const std::optional<PlateauConfig> plateau_;
  const std::optional<EarlyStopConfig> early_stop_;
};

}  // namespace dt::scheduler
