// The areas under two curves over samples of several processes. The area under the ROC curve is the
// probability that a positive sample scores higher than a negative one, where ties count half; it
// is computed in integers. The area under the precision-recall curve is the average precision: the
// sum, over the distinct scores as thresholds, of the precision times the gain in recall
// (scikit-learn's average_precision_score; nothing is interpolated). Its terms are added in
// ascending order of scores, so neither area depends on how the samples are distributed. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/base/status.h"

namespace dt {

// The samples of one process: scores ascending, with their labels (0 or 1) in the same order.
struct ScoreRun {
  std::span<const float> scores;
  std::span<const uint8_t> labels;
};

struct Auc {
  std::optional<double> value;  // Nothing unless both classes occur.
  std::optional<double> pr;     // Nothing without a positive sample.
  // False: computed from 2^20 bins of equal width in probability.
  bool exact = true;
};

inline constexpr uint64_t kExactAucSamplesMax = 64ull << 20;

// Exact up to kExactAucSamplesMax samples. Malformed if a run is not ascending, or contains NaN or
// a label other than 0 and 1.
Result<Auc> MergedAuc(std::span<const ScoreRun> runs);
// The two methods, for any number of samples below 2^32. REQUIRES: runs are valid as for MergedAuc.
Auc ExactAuc(std::span<const ScoreRun> runs);
Auc BinnedAuc(std::span<const ScoreRun> runs);

}  // namespace dt
