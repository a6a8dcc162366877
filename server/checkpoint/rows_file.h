// The rows of shards in a checkpoint: the files of an executor's disk tier, readable by any number
// of servers with any number of shards.
//
//   <folder>/server-<id>/rows-<executor>/   RocksDB's files (common/storage/rocksdb_rows.h)
//   header:  key 0x00                       value RowsHeader as text
//   state:   key shard | table              value EmbeddingTable::LifeState, which may be empty
//   a row:   key as in row_key.h            value the row's record (table_rows.h)
//
// Tables on workers are in <folder>/worker-<rank>/rows-0/, in the same form, because a table may be
// on workers in one run of a job and on servers in the next.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/cluster/taken_parts.h"
#include "server/shard/shard_set.h"
#include "server/storage/disk_tier.h"

namespace dt::server {

struct CheckpointLocation {
  std::string folder;  // The folder of the whole checkpoint.
  ProcessId server;
  uint32_t executor = 0;
};

// Describes the checkpoint of these rows, for DiskTier::BeginSave at the cut. A shard counts in the
// file of the server at which its chain ends; the file may have rows of others, which do not.
std::unique_ptr<CheckpointTask> SaveTask(const ShardSet& shards, Step step,
                                         const CheckpointLocation& location);

struct RowsToLoad {
  std::string folder;  // Of the checkpoint; "" if all rows are taken from other files.
  Step step = 0;       // The clocks after loading.
  Generation generation;
  // Set if the checkpoint is another job's: only these parts are taken.
  std::optional<TakenParts> taken = {};
};

// Replaces the content of `shards` by their rows from all files of the folder. `tier` is fresh, and
// rows that do not fit into memory stay on its disk; if it is null, all rows go into memory.
// Errors: DataLoss naming the damaged or missing part; Invalid if the job's tables differ. After an
// error `shards` holds only some of the rows and must not be used.
// Admission counts are lost if the number of shards or the size of the sketch has changed. A
// warning then says so.
Status LoadRows(const RowsToLoad& load, ShardSet& shards, DiskTier* tier = nullptr);

}  // namespace dt::server
