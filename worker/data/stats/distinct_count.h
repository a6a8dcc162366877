// Counts distinct values in bounded memory.
#pragma once

#include <cstdint>

#include <absl/container/flat_hash_set.h>

#include "common/base/hash.h"

namespace dt::worker {

// Exact up to `limit` distinct values. Beyond, it keeps those whose hash ends with `k` zero bits,
// k as small as the limit allows: an estimate that is off by a few times 1 / sqrt(limit), and does
// not depend on the order. (Wegman's adaptive sampling; Flajolet, Computing 43, 1990.)
class DistinctCount {
 public:
  explicit DistinctCount(size_t limit = size_t{1} << 20) : limit_(limit) {}

  void Add(uint64_t value) {
    const uint64_t hash = MixBits(value);  // A bijection.
    if ((hash & mask_) != 0 || !kept_.insert(hash).second || kept_.size() <= limit_) return;
    mask_ = 2 * mask_ + 1;
    absl::erase_if(kept_, [this](uint64_t kept) { return (kept & mask_) != 0; });
  }
  uint64_t count() const { return kept_.size() * (mask_ + 1); }
  bool is_exact() const { return mask_ == 0; }

 private:
  const size_t limit_;
  uint64_t mask_ = 0;
  absl::flat_hash_set<uint64_t> kept_;
};

}  // namespace dt::worker
