// What an evaluation says about a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dt {

struct Metrics {
  std::optional<double> auc;          // Nothing unless both classes occur.
  std::optional<double> logloss;      // Mean; natural logarithm.
  std::optional<double> calibration;  // Sum of predictions / sum of labels.
  uint64_t samples = 0;
  bool auc_exact = true;  // See auc.h.
  friend bool operator==(const Metrics&, const Metrics&) = default;
};

// "valid.auc" or "valid.logloss".
inline std::optional<double> ValueOf(const Metrics& metrics, std::string_view name) {
  return name.ends_with("auc") ? metrics.auc : metrics.logloss;
}
inline bool HigherIsBetter(std::string_view name) { return name.ends_with("auc"); }

}  // namespace dt
