// The area under the ROC curve over samples of several processes: the probability that a positive
// sample scores higher than a negative one, where ties count half. It is computed in integers, so
// it does not depend on how the samples are distributed. Pure functions.
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
  // False: computed from 2^20 bins of equal width in probability.
  bool exact = true;
};

inline constexpr uint64_t kExactAucSamplesMax = 64ull << 20;

// Exact up to kExactAucSamplesMax samples. Malformed if a run is not ascending, or contains NaN or
// a label other than 0 and 1.
Result<Auc> MergedAuc(std::span<const ScoreRun> runs);
// The two methods, for any number of samples below 2^32. REQUIRES: runs are valid as for MergedAuc.
std::optional<double> ExactAuc(std::span<const ScoreRun> runs);
std::optional<double> BinnedAuc(std::span<const ScoreRun> runs);

}  // namespace dt
