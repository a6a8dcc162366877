// The metrics of an evaluation, and the mean losses of training: one value for each loss, in the
// order of the job's losses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fields.h"

namespace dt {

struct Metrics {
  std::optional<double> auc;          // Nothing unless both classes occur.
  std::optional<double> logloss;      // Mean; natural logarithm. Of a squared error, its mean.
  std::optional<double> calibration;  // Sum of predictions / sum of labels.
  uint64_t samples = 0;
  bool auc_exact = true;  // False: auc and pr_auc come from bins; see auc.h.
  // Share of the samples whose class, or item, scores highest.
  std::optional<double> accuracy;
  std::string loss;              // The loss's name.
  std::optional<double> pr_auc;  // Average precision; nothing without a positive sample.
  std::optional<double> rmse;    // Square root of the mean squared error.
  // Means over groups of samples; see ranking.h.
  std::optional<double> gauc, ndcg, recall, hit_rate, mrr;
  DT_FIELDS(loss, auc, logloss, calibration, accuracy, samples, auc_exact, pr_auc, rmse, gauc, ndcg,
            recall, hit_rate, mrr)
  friend bool operator==(const Metrics&, const Metrics&) = default;
};

using LossMetrics = std::vector<Metrics>;

enum class Better : uint8_t { kHigher, kLower, kNeither };

// One row of the table of metrics.
struct MetricInfo {
  std::string_view name;     // In job files, result files and `/metrics`.
  std::string_view title;    // For people.
  std::string_view meaning;  // A noun phrase.
  std::optional<double> Metrics::*value;
  Better better = Better::kHigher;
  std::string_view losses;  // The types of losses that have it, "a|b"; empty: all.
  bool by_group = false;    // Only losses with a group column have it.

  bool IsOf(std::string_view loss_type, bool has_group) const;
  // Whether early_stop and the plateau schedule may name it.
  bool decides() const { return better != Better::kNeither; }
};

// All metrics. The first that a loss has is its default for early_stop and the plateau schedule.
std::span<const MetricInfo> AllMetrics();

// The mean of one loss over the samples of some steps, without its factor in the sum of losses.
struct LossMean {
  std::string loss;  // The loss's name.
  double mean = 0;
  DT_FIELDS(loss, mean)
  friend bool operator==(const LossMean&, const LossMean&) = default;
};
// Empty until a step is done.
using LossMeans = std::vector<LossMean>;

// The value with the name "valid.auc" and so on, or with several losses "valid.<loss>.auc". Nothing
// if there is no such value.
std::optional<double> ValueOf(const LossMetrics& metrics, std::string_view name);
// REQUIRES: the name, as above, is that of a metric.
bool HigherIsBetter(std::string_view name);
// The most telling metric of each loss, which is the first of the table where higher is better, or
// else the first: "AUC 0.79310" for one loss, "click AUC 0.79310, rating logloss 0.81200" for
// several. "-" if there is none.
std::string SummaryOf(const LossMetrics& metrics);
// All metrics of one loss by which it may be judged: "AUC 0.79310, logloss 0.55100". "-" if there
// is none.
std::string DetailsOf(const Metrics& metrics);
// "0.55100" for one loss, "click 0.55100, rating 1.25000" for several. "-" if there is none.
std::string SummaryOf(const LossMeans& means);

}  // namespace dt
