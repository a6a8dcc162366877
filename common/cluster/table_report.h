// The numbers of one table on one server or worker.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/fields.h"
#include "common/base/ids.h"

namespace dt {

struct TableReport {
  std::string name;
  uint64_t rows = 0, rows_in_memory = 0, rows_on_disk = 0, bytes = 0;
  uint64_t checksum_low = 0, checksum_high = 0;  // Summed over servers modulo 2^64.
  // Counted since the process began: pushes to keys that have no row and got none; expired rows.
  uint64_t pushes_refused = 0, rows_expired = 0;
  // Counted since the shards began: keys in answered pulls; rows read from disk (for pulls, pushes
  // and prefetches); rows written to disk, counted each time.
  uint64_t rows_touched = 0, rows_fetched = 0, rows_written = 0;
  DT_FIELDS(name, rows, rows_in_memory, rows_on_disk, bytes, checksum_low, checksum_high,
            pushes_refused, rows_expired, rows_touched, rows_fetched, rows_written)
};

// The content of one copy of a shard, to be compared with the others.
struct CopySum {
  ShardId shard;
  uint64_t checksum_low = 0, checksum_high = 0;  // Summed over the shard's tables.
  DT_FIELDS(shard, checksum_low, checksum_high)
  friend bool operator==(const CopySum&, const CopySum&) = default;
};

}  // namespace dt
