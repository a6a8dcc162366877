#include "cli/summary.h"

#include <cstdio>

#include <fmt/core.h>

namespace dt::cli {
namespace {

// "valid AUC 0.79310, logloss 0.55100"; of several losses a line each, with its name.
void PrintMetrics(const char* split, const std::optional<LossMetrics>& metrics) {
  if (!metrics.has_value()) return;
  for (const Metrics& of : *metrics) {
    if (of.samples == 0) continue;
    std::string line = split;
    if (metrics->size() > 1) line += " " + of.loss;
    if (of.auc.has_value()) line += fmt::format(" AUC {:.5f},", *of.auc);
    if (of.accuracy.has_value()) line += fmt::format(" accuracy {:.5f},", *of.accuracy);
    std::printf("%s logloss %.5f\n", line.c_str(), of.logloss.value_or(0.0));
  }
}

}  // namespace

void PrintSummary(const JobResult& result) {
  if (result.steps > 0) {
    std::printf("job %s: %llu epochs, %llu steps, %.1f s, %.0f samples/s\n", result.job.c_str(),
                static_cast<unsigned long long>(result.epochs),
                static_cast<unsigned long long>(result.steps), result.seconds,
                result.seconds > 0 ? static_cast<double>(result.samples) / result.seconds : 0.0);
  }
  PrintMetrics("valid", result.valid);
  PrintMetrics("test", result.test);
}

}  // namespace dt::cli
