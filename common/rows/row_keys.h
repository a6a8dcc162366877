// The keys of a checkpoint's records that are not rows (row_key.h):
//
//   header   0x00
//   state    shard u32 | table id u64, big-endian: before the rows of that shard and table
#pragma once

#include <string>
#include <string_view>

#include "common/rows/row_key.h"

namespace dt {

inline constexpr std::string_view kHeaderKey("\0", 1);
inline constexpr size_t kStateKeyBytes = 12;

inline std::string StateKey(ShardId shard, TableId table) {
  return std::string(RowKey(shard, table, 0).text().substr(0, kStateKeyBytes));
}
// The prefix of all keys of a shard.
inline std::string ShardKey(ShardId shard) {
  return StateKey(shard, TableId(0)).substr(0, sizeof(uint32_t));
}
// A key behind all keys of a shard, and before those of the next one.
inline std::string ShardEndKey(ShardId shard) {
  return ShardKey(shard) + std::string(RowKey::kBytes, '\xff');
}

// The shard of a row's or state's key.
inline ShardId ShardOfKey(std::string_view key) {
  uint32_t shard = 0;
  std::memcpy(&shard, key.data(), sizeof(shard));
  return ShardId(__builtin_bswap32(shard));
}
inline TableId TableOfKey(std::string_view key) {
  uint64_t table = 0;
  std::memcpy(&table, key.data() + sizeof(uint32_t), sizeof(table));
  return TableId(__builtin_bswap64(table));
}

}  // namespace dt
