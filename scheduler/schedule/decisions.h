// What evaluations on the validation data decide: the learning rate's scale, when to stop, and
// which evaluation was best. A function of the sequence of metrics alone.
//
//   gain       the metric is strictly better than every one before it; the first that exists is a
//              gain, too
//   plateau    after `patience` + 1 evaluations without gain in a row the scale is multiplied by
//              `factor`, but never below `min_scale`; counting starts again
//   early stop after `patience` evaluations without gain in a row training ends
//   best       the last evaluation with gain in early_stop's metric, or in plateau's where there is
//              no early_stop
// A metric that does not exist (one class only, not a number) is no gain.
#pragma once

#include <optional>

#include "common/config/job_config.h"
#include "common/metrics/metrics.h"

namespace dt::scheduler {

struct DecisionState {
  float lr_scale = 1;
  uint32_t plateau_without_gain = 0;
  uint32_t stop_without_gain = 0;
  std::optional<double> plateau_best, stop_best;  // Best values of their metrics so far.
  std::optional<Step> best_step;
  uint64_t best_epoch = 0;  // From 1.
  std::optional<LossMetrics> best;
  bool stopped = false;
  DT_FIELDS(lr_scale, plateau_without_gain, stop_without_gain, plateau_best, stop_best, best_step,
            best_epoch, best, stopped)
  friend bool operator==(const DecisionState&, const DecisionState&) = default;
};

// Whether a loss is so far above what it was at the job's first step, before any update, that the
// steps must be too large. Relative to that step, because the scale of a loss may be the data's.
inline constexpr double kDivergedFactor = 10;
inline bool HasDiverged(double mean, double first) {
  return first > 0 && mean > kDivergedFactor * first;
}

class Decisions {
 public:
  Decisions(std::optional<PlateauConfig> plateau, std::optional<EarlyStopConfig> early_stop)
      : plateau_(std::move(plateau)), early_stop_(std::move(early_stop)) {}

  // Whether the best evaluation is kept.
  bool keeps_best() const { return plateau_.has_value() || early_stop_.has_value(); }
  // `epoch` counts from 1.
  void OnEvaluation(const LossMetrics& metrics, Step step, uint64_t epoch,
                    DecisionState& state) const;

 private:
  const std::optional<PlateauConfig> plateau_;
  const std::optional<EarlyStopConfig> early_stop_;
};

}  // namespace dt::scheduler
