// The format of a saved row and of a shard's state of a table, in memory and in files.
//
//   record of a row:  values, padded to a multiple of 4 bytes | state f32 | last push u64
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/cluster/table_report.h"

namespace dt {

// The last push of a record, which is its end; none if it is too short to be one.
std::optional<Step> LastPushOf(std::span<const std::byte> record);

// Counts the row and adds it to the checksum of the report. A table's checksum is the sum over its
// rows of XXH3-128(table id, key, record), low and high halves each modulo 2^64. It depends neither
// on the order of rows nor on the server that holds them.
void AddRow(TableId table, Key key, std::span<const std::byte> record, TableReport& report);

// The state that a shard keeps of a table besides its rows (server/life) begins with these fields;
// the sketch and the marks follow. Little-endian.
struct LifeState {
  static constexpr size_t kMarkBytes = 16;
  static constexpr uint64_t kMagic = 0x314546494c5444ull;  // "DTLIFE1"
  uint64_t magic = kMagic;
  uint64_t sketch_bytes = 0, running_ns = 0;
  Step expire_before = 0;  // Rows whose last push is before it have expired.
  uint64_t marks = 0;
};
// Malformed: not such a state.
Result<LifeState> LifeStateOf(std::string_view state);
// The field expire_before of a state; 0 for an empty state.
Result<Step> ExpireBeforeOf(std::string_view state);

}  // namespace dt
