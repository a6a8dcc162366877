// Merges the workers' reports of one order into one result. Values only.
#pragma once

#include <map>
#include <span>

#include "common/base/status.h"
#include "common/config/model_config.h"
#include "common/control/orders.h"
#include "common/metrics/metrics.h"
#include "scheduler/schedule/job_schedule.h"

namespace dt::scheduler {

// How a job's orders to train are carried out.
struct TrainingKind {
  size_t losses = 1;
  // Every worker reports its own share. Otherwise all report the sums of all, which are equal.
  bool asynchronous = false;
};

// Whether a report can be one of this order: right end, right number of losses, all finite.
bool Fits(const TrainDone& done, const TrainOrder& order, size_t losses);
// REQUIRES: every report fits, and synchronous workers report the same number of samples.
Trained MergeTraining(const std::map<ProcessId, TrainDone>& reports, const TrainingKind& kind);

// Gives the same numbers however batches were shared: sums run in batch order, the AUC counts.
// Malformed if a batch is missing or there twice, or if scores and batches differ in number.
Result<LossMetrics> MergeEvaluation(const std::map<ProcessId, EvaluateDone>& outcomes,
                                    std::span<const LossConfig> losses);

// One line of the log for each loss.
void LogEvaluation(const EvaluateOrder& order, const LossMetrics& metrics);

}  // namespace dt::scheduler
