// What the workers found in one evaluation, as one.
#pragma once

#include <map>
#include <span>

#include "common/base/status.h"
#include "common/cluster/evaluation_result.h"
#include "common/config/model_config.h"
#include "common/metrics/metrics.h"

namespace dt::scheduler {

// The same numbers for any sharing of the batches: sums run in batch order, the AUC counts.
// Malformed if a batch is missing or there twice, or if scores and batches differ in number.
Result<LossMetrics> MergeEvaluation(const std::map<ProcessId, EvaluateDone>& outcomes,
                                    std::span<const LossConfig> losses);

}  // namespace dt::scheduler
