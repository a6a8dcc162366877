#include "server/life/count_min_sketch.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace dt::server {
namespace {

// The counter for a row in the line; its four bits of the hash have no part in choosing the line.
uint32_t PlaceIn(uint64_t hash, uint32_t row) {
  return row * 16 + (static_cast<uint32_t>(hash >> (4 * row)) & 15);
}

}  // namespace

CountMinSketch::CountMinSketch(uint64_t bytes, uint64_t salt)
    : salt_(salt), lines_(std::max<uint64_t>(1, bytes / sizeof(Line))) {}

// Mixed twice, because keys of one shard have bits of the first mix in common.
uint64_t CountMinSketch::HashOf(Key key) const { return MixBits(MixBits(key ^ salt_) + salt_); }

uint64_t CountMinSketch::LineOf(uint64_t hash) const {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(hash) * lines_.size() >> 64);
}

uint32_t CountMinSketch::Estimate(Key key) const {
  const uint64_t hash = HashOf(key);
  const Line& line = lines_[LineOf(hash)];
  uint32_t least = kCountMax;
  for (uint32_t r = 0; r < kRows; ++r) {
    least = std::min<uint32_t>(least, line.counts[PlaceIn(hash, r)]);
  }
  return least;
}

void CountMinSketch::RaiseTo(Key key, uint32_t count) {
  DT_CHECK(count <= kCountMax);
  const uint64_t hash = HashOf(key);
  Line& line = lines_[LineOf(hash)];
  for (uint32_t r = 0; r < kRows; ++r) {
    uint8_t& at = line.counts[PlaceIn(hash, r)];
    at = std::max(at, static_cast<uint8_t>(count));
  }
}

void CountMinSketch::Clear() { std::ranges::fill(lines_, Line{}); }

}  // namespace dt::server
