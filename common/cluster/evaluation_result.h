// The result of one worker's share of an evaluation.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/fields.h"
#include "common/base/ids.h"

namespace dt {

// The sums of one evaluation batch. Batches are numbered over the whole split, not per worker.
struct EvaluatePart {
  uint64_t batch = 0;
  uint64_t samples = 0;
  double loss_sum = 0;  // Sum of logloss (or squared error), in sample order.
  double label_sum = 0;
  double prediction_sum = 0;  // Sum of the predicted probabilities.
  uint64_t hits = 0;          // Samples whose class, or item, scores highest.
  DT_FIELDS(batch, samples, loss_sum, label_sum, prediction_sum, hits)
};
// The results for one loss.
struct LossScores {
  std::vector<EvaluatePart> parts;
  std::vector<float> scores;    // Logits of this worker's samples, ascending.
  std::vector<uint8_t> labels;  // 0 or 1, in the order of `scores`.
  // The samples' groups, in the same order; empty for a loss without a group column.
  std::vector<Key> groups;
  DT_FIELDS(parts, scores, labels, groups)
  bool IsSound() const {
    return scores.size() == labels.size() && (groups.empty() || groups.size() == scores.size());
  }
};
struct EvaluateDone {
  std::vector<LossScores> losses;  // In the order of the job's losses.
  DT_FIELDS(losses)
};

}  // namespace dt
