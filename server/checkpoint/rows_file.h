// The rows of shards as files of a checkpoint: sorted, checked block by block, readable by any
// number of servers with any number of shards.
//
//   <folder>/server-<id>/rows-<executor>.sst
//   header:  key 0x00                                        value RowsHeader as text
//   a row:   key shard u32 | table id u64 | key u64, big-endian   value the row's record
//   (embedding_table.h)
#pragma once

#include <string>

#include "common/wire/control.h"
#include "server/shard/shard_set.h"

namespace dt::server {

struct SavePlace {
  std::string folder;  // Of the checkpoint.
  ProcessId server;
  uint32_t executor = 0;
};

// Writes every row. A file that could not be written whole is removed; the error says what, where
// and how much room it needs.
Result<CheckpointFile> SaveRows(const ShardSet& shards, Step step, const SavePlace& place);

// Forgets what `shards` hold and reads their rows from all files of the folder; their clocks become
// `step`. Errors: DataLoss naming the damaged or missing part, Invalid where the job's tables
// differ. After an error the shards hold some of the rows: the caller must not go on with them.
Status LoadRows(const std::string& folder, Step step, Generation generation, ShardSet& shards);

}  // namespace dt::server
