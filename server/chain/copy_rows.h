// Rows in a message that copies a shard: one behind the other, each
//
//   table u32 | bytes u32 | key u64 | the row's record (table_rows.h), padded to a multiple of 8
//
// `table` counts the job's tables.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/frame.h"

namespace dt::server {

// Appends a row; returns the space for its record, valid until the next call.
std::span<std::byte> AppendRow(uint32_t table, Key key, uint32_t record_bytes, std::string& to);

struct CopiedRow {
  uint32_t table = 0;
  Key key = 0;
  std::span<const std::byte> record;
};

// Views of the rows in the bytes. Malformed: AppendRow cannot have written them.
Result<std::vector<CopiedRow>> RowsIn(std::span<const std::byte> bytes);

}  // namespace dt::server
