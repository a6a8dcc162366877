// Metrics as JSON, for result files and `dovetail status --json`. Include it only in .cc files: the
// JSON library is slow to compile.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "common/metrics/metrics.h"

namespace dt {

template <class T>
nlohmann::ordered_json OrNull(const std::optional<T>& value) {
  return value.has_value() ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

// AUC, logloss and calibration are always there; the other metrics, if they have a value.
inline nlohmann::ordered_json MetricsJson(const Metrics& metrics) {
  nlohmann::ordered_json json = {{"auc", OrNull(metrics.auc)},
                                 {"logloss", OrNull(metrics.logloss)},
                                 {"calibration", OrNull(metrics.calibration)}};
  if (!metrics.auc_exact) json["auc_exact"] = false;
  for (const MetricInfo& metric : AllMetrics()) {
    const std::optional<double> value = metrics.*metric.value;
    if (value.has_value()) json[metric.name] = *value;
  }
  return json;
}

// One loss: its metrics. Several: an object with the metrics of each loss. None: metrics without
// values.
inline nlohmann::ordered_json MetricsJson(const std::optional<LossMetrics>& metrics) {
  if (!metrics.has_value() || metrics->empty()) return MetricsJson(Metrics());
  if (metrics->size() == 1) return MetricsJson(metrics->front());
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Metrics& of : *metrics) json[of.loss] = MetricsJson(of);
  return json;
}

// The means of training losses in the same form; null if there are none.
inline nlohmann::ordered_json MeansJson(const LossMeans& means) {
  if (means.empty()) return nullptr;
  if (means.size() == 1) return {{"logloss", means.front().mean}};
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const LossMean& of : means) json[of.loss] = {{"logloss", of.mean}};
  return json;
}

}  // namespace dt
