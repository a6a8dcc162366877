// How often keys were counted, in fixed memory: never less than the truth, more where keys collide.
// The count-min sketch of Cormode & Muthukrishnan, "An improved data stream summary" (J. Algorithms
// 2005), four rows, with conservative update (Estan & Varghese, SIGCOMM 2002). The four counters of
// a key lie in one cache line, a row being one place in each of its quarters: one cache miss a key
// instead of four.
//
// What it holds is a function of the sets of keys counted together, not of their order. Owned by
// one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace dt::server {

class CountMinSketch {
 public:
  static constexpr uint32_t kCountMax = 255;

  CountMinSketch() = default;  // Counts nothing.
  // `bytes` is rounded down to whole lines; at least one. `salt` decides which keys collide.
  CountMinSketch(uint64_t bytes, uint64_t salt);

  // A bound on how often the key was counted.
  uint32_t Estimate(Key key) const;
  // From now on Estimate(key) is at least `count`. Counts keys once each: Estimate of all first,
  // then RaiseTo(estimate + 1) of each. REQUIRES: count <= kCountMax.
  void RaiseTo(Key key, uint32_t count);
  void Clear();

  // For fetching it ahead.
  const void* PlaceOf(Key key) const { return &lines_[LineOf(HashOf(key))]; }

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(lines_)); }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(lines_)); }

 private:
  static constexpr uint32_t kRows = 4;
  static constexpr uint32_t kPerRow = 16;  // In one line.
  struct alignas(64) Line {
    uint8_t counts[kRows * kPerRow];
  };

  uint64_t HashOf(Key key) const;
  uint64_t LineOf(uint64_t hash) const;

  uint64_t salt_ = 0;
  std::vector<Line> lines_;
};

}  // namespace dt::server
