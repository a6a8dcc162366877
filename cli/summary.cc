#include "cli/summary.h"

#include <cstdio>

namespace dt::cli {
namespace {

void PrintMetrics(const char* name, const std::optional<Metrics>& metrics) {
  if (!metrics.has_value() || metrics->samples == 0) return;
  std::printf("%s AUC %.5f, logloss %.5f\n", name, metrics->auc.value_or(0.5),
              metrics->logloss.value_or(0.0));
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
