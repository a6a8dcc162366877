// Counts keys in fixed memory: an estimate is never below the true count, and above it if keys
// collide. The count-min sketch of Cormode & Muthukrishnan, "An improved data stream summary" (J.
// Algorithms 2005), with four rows and conservative update (Estan & Varghese, SIGCOMM 2002). The
// four counters of a key are in one cache line, one in each quarter, so that a key costs one cache
// miss instead of four.
//
// The content depends on the sets of keys counted together, not on their order. Owned by one
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace dt::server {

class CountMinSketch {
 public:
  static constexpr uint32_t kCountMax = 255;

  CountMinSketch() = default;  // A sketch without counters, which must not be used.
  // `bytes` is rounded down to whole cache lines, at least one. `salt` decides which keys collide.
  CountMinSketch(uint64_t bytes, uint64_t salt);

  // An upper bound on the key's count, as far as kCountMax.
  uint32_t Estimate(Key key) const;
  // Makes Estimate(key) at least `count`. To count a set of keys once each, call Estimate for all,
  // then RaiseTo(key, estimate + 1) for each. REQUIRES: count <= kCountMax.
  void RaiseTo(Key key, uint32_t count);
  void Clear();

  // The address that Estimate will read, for prefetching.
  const void* AddressOf(Key key) const { return &lines_[LineOf(HashOf(key))]; }

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(lines_)); }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(lines_)); }

 private:
  static constexpr uint32_t kRows = 4;
  static constexpr uint32_t kPerRow = 16;  // Counters of one row in one line.
  struct alignas(64) Line {
    uint8_t counts[kRows * kPerRow];
  };

  uint64_t HashOf(Key key) const;
  uint64_t LineOf(uint64_t hash) const;

  uint64_t salt_ = 0;
  std::vector<Line> lines_;
};

}  // namespace dt::server
