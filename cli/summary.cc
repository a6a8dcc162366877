#include "cli/summary.h"

#include <cstdio>

#include "cli/outcome.h"

namespace dt::cli {
namespace {

// Prints "valid AUC 0.79310, logloss 0.55100"; with several losses one line for each, with its
// name.
void PrintMetrics(const char* split, const std::optional<LossMetrics>& metrics) {
  if (!metrics.has_value()) return;
  for (const Metrics& of : *metrics) {
    if (of.samples == 0) continue;
    std::string line = split;
    if (metrics->size() > 1) line += " " + of.loss;
    Print("{} {}\n", line, DetailsOf(of));
  }
}

// Prints the training losses of the last epoch in the form of the evaluations.
void PrintTrain(const LossMeans& means) {
  for (const LossMean& of : means) {
    Print("train{} logloss {:.5f}\n", means.size() > 1 ? " " + of.loss : "", of.mean);
  }
}

// Prints the job's warnings again, because a job that completed may still have a problem.
void PrintWarnings(const std::vector<JobResult::Event>& events) {
  for (const JobResult::Event& event : events) {
    if (event.kind != "loss_diverged") continue;
    for (const auto& [key, detail] : event.details) {
      if (key == "why") Print("warning: {}\n", std::get<std::string>(detail));
    }
  }
}

}  // namespace

void PrintTaken(const std::vector<std::string>& report) {
  for (const std::string& line : report) Print("{}\n", line);
  std::fflush(stdout);
}

void PrintPage(const std::string& url) {
  if (url.empty()) return;
  Print("page {}\n", url);
  std::fflush(stdout);
}

void PrintSummary(const JobResult& result) {
  if (result.steps > 0) {
    Print("job {}: {}, {}, {:.1f} s, {:.0f} samples/s{}\n", result.job,
          Counted(result.epochs, "epoch"), Counted(result.steps, "step"), result.seconds,
          result.seconds > 0 ? static_cast<double>(result.samples) / result.seconds : 0.0,
          result.had_finished ? "; it had finished before, and nothing was trained" : "");
  }
  PrintTrain(result.train);
  if (result.plan.has_value()) {
    Print("plan: {:.3g} ms a step predicted, {:.3g} ms measured\n", 1e3 * result.plan->predicted,
          1e3 * result.plan->measured);
  }
  PrintMetrics("valid", result.valid);
  PrintMetrics("test", result.test);
  PrintWarnings(result.events);
  if (result.steps > 0 && !result.checkpoint.empty()) Print("checkpoint {}\n", result.checkpoint);
}

}  // namespace dt::cli
