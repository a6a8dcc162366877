// How a job ended: the content of the file that --result names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/fields.h"
#include "common/base/status.h"
#include "common/metrics/metrics.h"

namespace dt {

struct JobResult {
  struct Best {
    uint64_t epoch = 0;  // From 1.
    LossMetrics valid;
  };
  struct Usage {
    double cpu_seconds = 0;
    uint64_t peak_rss_bytes = 0, bytes_sent = 0, bytes_received = 0;
  };
  struct RoleReport {
    std::string role;
    uint32_t id = 0;
    int64_t pid = 0;
    // Memory and time that the process used; none if another role of the same process reports it.
    std::optional<Usage> usage;
  };
  struct Table {
    uint64_t rows = 0, rows_in_memory = 0, rows_on_disk = 0, bytes = 0;
    // Counted since the servers began; see TableReport.
    uint64_t pushes_refused = 0, rows_expired = 0;
    uint64_t rows_touched = 0, rows_fetched = 0, rows_written = 0;
    std::string checksum;  // Hex.
    DT_FIELDS(rows, rows_in_memory, rows_on_disk, bytes, pushes_refused, rows_expired, rows_touched,
              rows_fetched, rows_written, checksum)
  };
  using Detail = std::variant<int64_t, double, std::string>;
  struct Event {
    double t = 0;  // Seconds since the scheduler's start.
    std::string kind;
    std::vector<std::pair<std::string, Detail>> details;
    DT_FIELDS(t, kind, details)
  };
  // A stretch of training: the steps after the previous point, or after the job's start.
  struct CurvePoint {
    uint64_t step = 0;         // Number of steps done at the end of the stretch.
    double seconds = 0;        // Training time until the end of the stretch.
    uint64_t samples = 0;      // Samples in the stretch.
    double learning_rate = 0;  // The dense optimizer's rate at the end of the stretch.
    LossMeans losses;          // Means over the samples of the stretch.
    uint32_t pieces = 1;       // Number of points that were merged into this one.
    DT_FIELDS(step, seconds, samples, learning_rate, losses, pieces)
  };
  // One evaluation on the validation data.
  struct Evaluation {
    uint64_t epoch = 0;  // From 1: the epoch that was running or had just ended.
    uint64_t step = 0;
    float rate_scale = 1;      // The factor in the steps before the evaluation.
    double learning_rate = 0;  // The dense optimizer's rate in those steps.
    LossMetrics valid;
    LossMeans train;  // Means over the epoch so far.
    DT_FIELDS(epoch, step, rate_scale, learning_rate, train, valid)
  };

  // Seconds per training step in this run: the planner's prediction and the measured average.
  struct PlanCheck {
    double predicted = 0, measured = 0;
  };

  std::string job;
  // OK: completed. Cancelled: interrupted. Otherwise the job failed with this error.
  Status status;
  uint64_t samples = 0, steps = 0, epochs = 0;
  double seconds = 0;  // Training only.
  double seconds_total = 0;
  LossMeans train;  // Means over the last epoch.
  std::optional<LossMetrics> valid, test;
  std::optional<Best> best;
  std::optional<PlanCheck> plan;  // Only if the run trained.
  std::vector<RoleReport> roles;
  std::map<std::string, Table> tables;
  std::string dense_checksum;
  std::string checkpoint;  // The newest complete checkpoint; empty: none.
  // The job was complete before this run, which continued from its last checkpoint.
  bool had_finished = false;
  std::vector<Event> events;
  std::vector<Evaluation> history;
  std::vector<CurvePoint> curve;
};

// "completed", "interrupted", "failed".
std::string_view OutcomeOf(const Status& status);
// One JSON object with two spaces of indentation and a final line feed; absent values are null.
std::string ToJson(const JobResult& result);

}  // namespace dt
