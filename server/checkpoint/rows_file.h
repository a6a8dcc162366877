// The rows of shards in a checkpoint: the files of an executor's disk tier, readable by any number
// of servers with any number of shards.
//
//   <folder>/server-<id>/rows-<executor>/   RocksDB's files (common/storage/rocksdb_rows.h)
//   header:  key 0x00                       value RowsHeader as text
//   state:   key shard | table              value EmbeddingTable::LifeState, which may be empty
//   a row:   key as in row_key.h            value the row's record (table_rows.h)
//
// Tables on workers are in <folder>/worker-<rank>/rows-0/, in the same form: a table may live
// elsewhere each time a job is resumed.
#pragma once

#include <memory>
#include <string>

#include "server/shard/shard_set.h"
#include "server/storage/disk_tier.h"

namespace dt::server {

struct CheckpointLocation {
  std::string folder;  // The whole checkpoint's.
  ProcessId server;
  uint32_t executor = 0;
};

// For DiskTier::BeginSave, at the cut.
std::unique_ptr<CheckpointTask> SaveTask(const ShardSet& shards, Step step,
                                         const CheckpointLocation& location);

// Forgets what `shards` hold and reads their rows from all files of the folder; their clocks become
// `step`. `tier` is fresh; what does not fit into memory stays below it. Null: all must fit.
// Errors: DataLoss naming the damaged or missing part, Invalid where the job's tables differ. After
// an error the shards hold some of the rows: the caller must not go on with them. Counts of
// admission are those of the saved shards: into another number of shards, or under another size of
// sketch, they are not taken, and a warning says so.
Status LoadRows(const std::string& folder, Step step, Generation generation, ShardSet& shards,
                DiskTier* tier = nullptr);

}  // namespace dt::server
