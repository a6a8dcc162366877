// The metrics of an evaluation, and the mean losses of training: one value for each loss, in the
// order of the job's losses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fields.h"

namespace dt {

struct Metrics {
  std::optional<double> auc;          // Nothing unless both classes occur.
  std::optional<double> logloss;      // Mean; natural logarithm.
  std::optional<double> calibration;  // Sum of predictions / sum of labels.
  uint64_t samples = 0;
  bool auc_exact = true;  // See auc.h.
  // Share of the samples whose class, or item, scores highest; softmax losses only.
  std::optional<double> accuracy;
  std::string loss;  // The loss's name.
  DT_FIELDS(loss, auc, logloss, calibration, accuracy, samples, auc_exact)
  friend bool operator==(const Metrics&, const Metrics&) = default;
};

using LossMetrics = std::vector<Metrics>;

// The mean of one loss over the samples of some steps, without its factor in the sum of losses.
struct LossMean {
  std::string loss;  // The loss's name.
  double mean = 0;
  DT_FIELDS(loss, mean)
  friend bool operator==(const LossMean&, const LossMean&) = default;
};
// Empty until a step is done.
using LossMeans = std::vector<LossMean>;

// The value with the name "valid.auc", "valid.logloss" or "valid.accuracy", or with several losses
// "valid.<loss>.auc" and so on. Nothing if there is no such value.
std::optional<double> ValueOf(const LossMetrics& metrics, std::string_view name);
bool HigherIsBetter(std::string_view name);
// The most telling metric of each loss: "AUC 0.79310" for one loss, "click AUC 0.79310, rating
// logloss 0.81200" for several. "-" if there is none.
std::string SummaryOf(const LossMetrics& metrics);
// "0.55100" for one loss, "click 0.55100, rating 1.25000" for several. "-" if there is none.
std::string SummaryOf(const LossMeans& means);

}  // namespace dt
