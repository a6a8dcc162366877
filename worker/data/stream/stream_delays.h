// How long messages of a stream take from when they are written until the step that trains on them
// is applied. Used by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/base/ids.h"

namespace dt::worker {

class StreamDelays {
 public:
  // The messages of a part of a step, by the time at which each was written, in seconds since 1970.
  void OnFetched(Step step, std::vector<double> written);
  // All steps before this one are applied.
  void OnApplied(Step before, double now);
  // What was fetched and not applied is not going to be, or is fetched again.
  void Forget() { fetched_.clear(); }

  uint64_t count() const { return count_; }
  // Seconds that a share of the messages took at most, within 2 per cent. REQUIRES: count() > 0.
  double Quantile(double share) const;

 private:
  // Bucket i has delays up to kLeast * kRatio^i.
  static constexpr double kLeast = 1e-3, kRatio = 1.02;
  static constexpr size_t kBuckets = 1000;  // The last one begins after four days.

  struct Fetched {
    Step step = 0;
    std::vector<double> written;
  };
  std::deque<Fetched> fetched_;
  std::array<uint64_t, kBuckets> buckets_ = {};
  uint64_t count_ = 0;
};

}  // namespace dt::worker
