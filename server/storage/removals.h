// Shards that have left an executor whose rows are partly below memory: removes these rows from the
// disk, and tells when nothing of a shard is left. Until then the executor must not take the shard
// again, for it would find old rows.
//
// Owned by the executor's thread.
#pragma once

#include <vector>

#include "server/storage/disk_threads.h"
#include "server/storage/fetcher.h"
#include "server/storage/rows_below.h"

namespace dt::server {

class Removals {
 public:
  // All arguments outlive it.
  Removals(RowsBelow& below, const Fetcher& fetcher, DiskThreads& disk)
      : below_(below), fetcher_(fetcher), disk_(disk) {}

  // `rows_below`: the number of the shard's rows below memory.
  void Begin(ShardId shard, uint64_t rows_below);
  void Work();
  // Called when the disk has removed the shard's rows.
  void OnRemoved(ShardId shard);
  bool Contains(ShardId shard) const;

 private:
  struct Removal {
    ShardId shard;
    uint64_t fetches = 0;  // Fetches up to this number may bring rows of the shard.
    bool given = false;    // The disk has been told to remove the rows,
    bool done = false;     // and has done so.
  };

  RowsBelow& below_;
  const Fetcher& fetcher_;
  DiskThreads& disk_;
  std::vector<Removal> removals_;
};

}  // namespace dt::server
