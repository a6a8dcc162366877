#include "common/metrics/metrics.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dt {
namespace {

constexpr std::string_view kBinary = "binary_cross_entropy|focal";

constexpr MetricInfo kMetrics[] = {
    {.name = "auc",
     .title = "AUC",
     .meaning = "area under the ROC curve",
     .value = &Metrics::auc,
     .losses = kBinary},
    {.name = "logloss",
     .title = "logloss",
     .meaning = "mean of the loss",
     .value = &Metrics::logloss,
     .better = Better::kLower,
     .losses = ""},
    {.name = "accuracy",
     .title = "accuracy",
     .meaning = "share of samples whose class or item scores highest",
     .value = &Metrics::accuracy,
     .losses = "softmax_cross_entropy|in_batch_softmax|bpr|sampled_softmax"},
    {.name = "pr_auc",
     .title = "PR AUC",
     .meaning = "average precision, the area under the precision-recall curve",
     .value = &Metrics::pr_auc,
     .losses = kBinary},
    {.name = "rmse",
     .title = "RMSE",
     .meaning = "square root of the mean squared error",
     .value = &Metrics::rmse,
     .better = Better::kLower,
     .losses = "mse"},
    {.name = "gauc",
     .title = "GAUC",
     .meaning = "mean AUC of groups, each weighted by its number of samples",
     .value = &Metrics::gauc,
     .losses = kBinary,
     .by_group = true},
    {.name = "ndcg",
     .title = "NDCG",
     .meaning = "mean over groups of the NDCG of the top_k samples",
     .value = &Metrics::ndcg,
     .losses = kBinary,
     .by_group = true},
    {.name = "recall",
     .title = "recall",
     .meaning = "mean over groups of the share of positive samples that are in the top_k",
     .value = &Metrics::recall,
     .losses = kBinary,
     .by_group = true},
    {.name = "hit_rate",
     .title = "hit rate",
     .meaning = "share of groups with a positive sample in the top_k",
     .value = &Metrics::hit_rate,
     .losses = kBinary,
     .by_group = true},
    {.name = "mrr",
     .title = "MRR",
     .meaning = "mean over groups of 1 / the rank of the first positive sample",
     .value = &Metrics::mrr,
     .losses = kBinary,
     .by_group = true},
    {.name = "calibration",
     .title = "calibration",
     .meaning = "sum of predictions / sum of labels",
     .value = &Metrics::calibration,
     .better = Better::kNeither,
     .losses = "binary_cross_entropy|focal|mse"},
};

std::string_view MetricOf(std::string_view name) { return name.substr(name.rfind('.') + 1); }

const MetricInfo* FindMetric(std::string_view metric) {
  const auto* const found = std::ranges::find(kMetrics, metric, &MetricInfo::name);
  return found == std::end(kMetrics) ? nullptr : found;
}

// The metrics that have a value, each with its title; first those where higher is better.
std::vector<std::string> TextsOf(const Metrics& metrics) {
  std::vector<std::string> texts;
  for (const Better better : {Better::kHigher, Better::kLower}) {
    for (const MetricInfo& metric : kMetrics) {
      const std::optional<double> value = metrics.*metric.value;
      if (metric.better != better || !value.has_value()) continue;
      texts.push_back(fmt::format("{} {:.5f}", metric.title, *value));
    }
  }
  return texts;
}

std::string MostTelling(const Metrics& metrics) {
  const std::vector<std::string> texts = TextsOf(metrics);
  return texts.empty() ? "-" : texts.front();
}

}  // namespace

bool MetricInfo::IsOf(std::string_view loss_type, bool has_group) const {
  if (by_group && !has_group) return false;
  if (losses.empty()) return true;
  for (std::string_view rest = losses; !rest.empty();) {
    const size_t end = std::min(rest.find('|'), rest.size());
    if (rest.substr(0, end) == loss_type) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::span<const MetricInfo> AllMetrics() { return kMetrics; }

std::optional<double> ValueOf(const LossMetrics& metrics, std::string_view name) {
  const MetricInfo* const metric = FindMetric(MetricOf(name));
  if (metric == nullptr) return std::nullopt;
  for (const Metrics& of : metrics) {
    const std::string full = metrics.size() == 1
                                 ? fmt::format("valid.{}", metric->name)
                                 : fmt::format("valid.{}.{}", of.loss, metric->name);
    if (full == name) return of.*metric->value;
  }
  return std::nullopt;
}

bool HigherIsBetter(std::string_view name) {
  const MetricInfo* const metric = FindMetric(MetricOf(name));
  DT_CHECK_MSG(metric != nullptr, "\"{}\" is no metric", name);
  return metric->better == Better::kHigher;
}

std::string SummaryOf(const LossMetrics& metrics) {
  if (metrics.size() == 1) return MostTelling(metrics.front());
  std::string text;
  for (const Metrics& of : metrics) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", of.loss, MostTelling(of));
  }
  return text.empty() ? "-" : text;
}

std::string DetailsOf(const Metrics& metrics) {
  const std::vector<std::string> texts = TextsOf(metrics);
  return texts.empty() ? "-" : JoinText(texts, ", ");
}

std::string SummaryOf(const LossMeans& means) {
  if (means.size() == 1) return fmt::format("{:.5f}", means.front().mean);
  std::string text;
  for (const LossMean& of : means) {
    text += fmt::format("{}{} {:.5f}", text.empty() ? "" : ", ", of.loss, of.mean);
  }
  return text.empty() ? "-" : text;
}

}  // namespace dt
