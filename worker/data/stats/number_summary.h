// Sums up the numbers of a column.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "worker/data/stats/distinct_count.h"

namespace dt::worker {

// One thread. Takes up to 2 MB, and up to 5 MB more for quantiles.
class NumberSummary {
 public:
  // `sample`: how many numbers are kept for quantiles, at most; 0: no quantiles are asked for.
  explicit NumberSummary(size_t sample) : sample_(sample) { kept_.reserve(sample + 1); }

  // A number; NaN: it is missing.
  void Add(float value);

  uint64_t missing() const { return missing_; }
  // These are of the numbers that are there. REQUIRES: count() > 0, for the others.
  uint64_t count() const { return count_; }
  float min() const { return min_; }
  float max() const { return max_; }
  double mean() const { return mean_; }
  double deviation() const;  // Biased: divided by the count.
  const DistinctCount& distinct() const { return distinct_; }
  // The numbers at `points` places of the ascending order, evenly spaced from the first to the
  // last: of all numbers if the sample has room for them, else of those that a hash of their
  // position selects. REQUIRES: points > 1, a sample.
  std::vector<float> Quantiles(size_t points) const;

 private:
  const size_t sample_;
  uint64_t count_ = 0, missing_ = 0;
  float min_ = 0, max_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // Sum of (value - mean)²; Welford, Technometrics 4, 1962.
  DistinctCount distinct_{size_t{1} << 16};
  uint64_t mask_ = 0;  // Numbers are kept if the hash of their position has none of these bits.
  std::vector<std::pair<uint64_t, float>> kept_;  // With the hash.
};

}  // namespace dt::worker
