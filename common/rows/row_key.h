// The key of a row on disk: shard u32 | table id u64 | key u64, big-endian, so that a shard is one
// range of keys, and so is each table in it.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/ids.h"

namespace dt {

struct RowKey {
  static constexpr size_t kBytes = 20;
  std::array<char, kBytes> bytes;

  RowKey() = default;
  RowKey(ShardId shard, TableId table, Key key) {
    const uint32_t s = __builtin_bswap32(shard.value());
    const uint64_t t = __builtin_bswap64(table.value()), k = __builtin_bswap64(key);
    std::memcpy(bytes.data(), &s, sizeof(s));
    std::memcpy(bytes.data() + 4, &t, sizeof(t));
    std::memcpy(bytes.data() + 12, &k, sizeof(k));
  }
  // REQUIRES: text has kBytes bytes.
  explicit RowKey(std::string_view text) { std::memcpy(bytes.data(), text.data(), kBytes); }

  std::string_view text() const { return {bytes.data(), kBytes}; }
  ShardId shard() const { return ShardId(__builtin_bswap32(Read<uint32_t>(0))); }
  TableId table() const { return TableId(__builtin_bswap64(Read<uint64_t>(4))); }
  Key key() const { return __builtin_bswap64(Read<uint64_t>(12)); }
  friend auto operator<=>(const RowKey& a, const RowKey& b) { return a.text() <=> b.text(); }
  friend bool operator==(const RowKey& a, const RowKey& b) { return a.text() == b.text(); }
  template <class H>
  friend H AbslHashValue(H state, const RowKey& row) {
    return H::combine_contiguous(std::move(state), row.bytes.data(), kBytes);
  }

 private:
  template <class T>
  T Read(size_t at) const {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    return value;
  }
};
static_assert(std::endian::native == std::endian::little);

}  // namespace dt
