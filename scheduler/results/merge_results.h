// Merges the workers' reports of one order into one result. Pure functions.
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
  // True: every worker reports its own share. False: every worker reports the same sums over all
  // workers.
  bool asynchronous = false;
};

// Whether a report fits the order: right last step, right number of losses, all finite.
bool Fits(const TrainDone& done, const TrainOrder& order, size_t losses);
// REQUIRES: every report fits, and synchronous workers report the same number of samples.
Trained MergeTraining(const std::map<ProcessId, TrainDone>& reports, const TrainingKind& kind);

// The result does not depend on how batches were divided among workers: sums run in batch order,
// and metrics of ranking are computed from all scores in order (auc.h, ranking.h). `in_parts`: the
// data is cut into stripes, or is of a stream, so that the batches of each part are numbered from
// another number. Errors: Malformed, if a batch is there twice or, unless `in_parts`, is missing;
// if the numbers of scores, groups and samples differ.
Result<LossMetrics> MergeEvaluation(const std::map<ProcessId, EvaluateDone>& outcomes,
                                    std::span<const LossConfig> losses, bool in_parts = false);

// One line of the log for each loss.
void LogEvaluation(const EvaluateOrder& order, const LossMetrics& metrics);

}  // namespace dt::scheduler
