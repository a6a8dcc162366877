#include "common/metrics/metrics.h"

#include <fmt/format.h>

namespace dt {
namespace {

std::string_view MetricOf(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::string TextOf(const Metrics& metrics) {
  if (metrics.auc.has_value()) return fmt::format("AUC {:.5f}", *metrics.auc);
  if (metrics.accuracy.has_value()) return fmt::format("accuracy {:.5f}", *metrics.accuracy);
  if (metrics.logloss.has_value()) return fmt::format("logloss {:.5f}", *metrics.logloss);
  return "-";
}

}  // namespace

std::optional<double> ValueOf(const LossMetrics& metrics, std::string_view name) {
  const std::string_view metric = MetricOf(name);
  for (const Metrics& of : metrics) {
    const std::string full = metrics.size() == 1 ? fmt::format("valid.{}", metric)
                                                 : fmt::format("valid.{}.{}", of.loss, metric);
    if (full != name) continue;
    if (metric == "auc") return of.auc;
    return metric == "accuracy" ? of.accuracy : of.logloss;
  }
  return std::nullopt;
}

bool HigherIsBetter(std::string_view name) { return MetricOf(name) != "logloss"; }

std::string SummaryOf(const LossMetrics& metrics) {
  if (metrics.size() == 1) return TextOf(metrics.front());
  std::string text;
  for (const Metrics& of : metrics) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", of.loss, TextOf(of));
  }
  return text.empty() ? "-" : text;
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
