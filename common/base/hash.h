// Hash functions whose values are part of our formats and therefore never change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/ids.h"

namespace dt {

inline uint64_t HashBytes(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

struct Hash128 {
  uint64_t low = 0, high = 0;
};
inline Hash128 HashBytes128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

// The key of a string is XXH3-64 of its bytes.
inline uint64_t HashString(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

inline TableId TableIdOf(std::string_view name) { return TableId(HashString(name)); }

// A bijection of 64-bit integers (the finaliser of SplitMix64, Steele et al., OOPSLA 2014).
constexpr uint64_t MixBits(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  x ^= x >> 31;
  return x;
}

// The hash of a sequence: of what was hashed before, and the next element's.
constexpr uint64_t CombinedHash(uint64_t before, uint64_t next) {
  return MixBits(before ^ next) + next;
}

// The shard that owns `key` of `table`. `shards` is a power of two.
constexpr ShardId ShardOf(TableId table, Key key, uint32_t shards) {
  return ShardId(static_cast<uint32_t>(MixBits(key ^ MixBits(table.value())) >> 32) & (shards - 1));
}

}  // namespace dt
