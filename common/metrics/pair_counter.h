// Counts pairs of a positive and a negative sample: the area under the ROC curve as a fraction.
#pragma once

#include <cstdint>
#include <optional>

namespace dt {

class PairCounter {
 public:
  // Adds samples of one score. REQUIRES: scores ascend from call to call.
  void Add(uint64_t negatives, uint64_t positives) {
    won_twice_ += static_cast<unsigned __int128>(positives) * (2 * negatives_ + negatives);
    negatives_ += negatives;
    positives_ += positives;
  }
  // Nothing unless both classes occur.
  std::optional<double> Value() const {
    if (negatives_ == 0 || positives_ == 0) return std::nullopt;
    const double pairs = static_cast<double>(negatives_) * static_cast<double>(positives_);
    return static_cast<double>(won_twice_) / 2.0 / pairs;
  }

 private:
  // Twice the number of pairs that the positive sample wins, plus the number of ties.
  unsigned __int128 won_twice_ = 0;
  uint64_t negatives_ = 0, positives_ = 0;
};

}  // namespace dt
