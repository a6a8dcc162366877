// What a saved row and a shard's memory of a table look like, wherever they are kept.
//
//   record of a row:  values, filled up to a multiple of 4 bytes | state f32 | last push u64
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/cluster/table_report.h"

namespace dt {

// The last push of a record, which ends with it; none if it is too short to be one.
std::optional<Step> LastPushOf(std::span<const std::byte> record);

// Counts the row, and adds it to the checksum: what a table holds, in 128 bits that depend neither
// on the order of rows nor on who holds them, is the sum over rows of XXH3-128(table id, key,
// record), low and high halves each modulo 2^64.
void AddRow(TableId table, Key key, std::span<const std::byte> record, TableReport& report);

// What a shard remembers of a table beside its rows (server/life) begins with these; the sketch and
// the marks follow. Little-endian.
struct LifeState {
  static constexpr size_t kMarkBytes = 16;
  static constexpr uint64_t kMagic = 0x314546494c5444ull;  // "DTLIFE1"
  uint64_t magic = kMagic;
  uint64_t sketch_bytes = 0, running_ns = 0;
  Step expire_before = 0;  // Rows whose last push lies before it are gone.
  uint64_t marks = 0;
};
// Malformed: no such state.
Result<LifeState> LifeStateOf(std::string_view state);
// The same field of a state, 0 if it is empty: nothing is remembered.
Result<Step> ExpireBeforeOf(std::string_view state);

}  // namespace dt
