// The area under the ROC curve over samples that several processes hold: the probability that a
// positive sample scores higher than a negative one, ties counting half. Counted in integers, so it
// does not depend on how the samples are shared out. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/base/status.h"

namespace dt {

// One process's samples: scores ascending, labels (0 or 1) beside them.
struct ScoreRun {
  std::span<const float> scores;
  std::span<const uint8_t> labels;
};

struct Auc {
  std::optional<double> value;  // Nothing unless both classes occur.
  bool exact = true;            // False: scores were put into 2^20 bins of equal probability width.
};

inline constexpr uint64_t kExactAucSamplesMax = 64ull << 20;

// Exact up to kExactAucSamplesMax samples. Malformed if a run is not ascending, holds NaN, or
// another label.
Result<Auc> MergedAuc(std::span<const ScoreRun> runs);
// The two ways of it, for any number of samples below 2^32. REQUIRES: runs are as above.
std::optional<double> ExactAuc(std::span<const ScoreRun> runs);
std::optional<double> BinnedAuc(std::span<const ScoreRun> runs);

}  // namespace dt
