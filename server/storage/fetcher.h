// Returns rows to memory: those in a run on its way to disk at once, those on disk by the reader's
// thread. Requests that wait for rows ask again when TierProgress says so.
//
// Owned by the executor's thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/status.h"
#include "server/shard/shard_set.h"
#include "server/storage/disk_threads.h"
#include "server/storage/rows_below.h"
#include "server/storage/tier_progress.h"

namespace dt::server {

class Fetcher {
 public:
  // All arguments outlive it.
  Fetcher(ShardSet& shards, RowsBelow& below, DiskThreads& disk, TierProgress& progress)
      : shards_(shards), below_(below), disk_(disk), progress_(progress) {}

  // True if every row of the runs is in memory or does not exist. Otherwise it has begun to read
  // the missing rows.
  bool EnsureInMemory(std::span<const EmbeddingTable::KeyRun> runs);
  // Puts the rows that the disk has read into memory; drops those of shards that have gone. Errors:
  // those of the disk, and DataLoss.
  Status OnFetched(const RowFetch& fetch);
  // Fetches are numbered from 1, and end in that order. The number of the last one that is under
  // way or gathered, and of the last one that has ended.
  uint64_t begun() const { return sent_ + (gathered_ != nullptr ? 1 : 0); }
  uint64_t ended() const { return done_; }

 private:
  // The number of the fetch that returns the row; 0: none is needed.
  uint64_t Bring(EmbeddingTable& table, Key key);
  bool BringFromRun(EmbeddingTable& table, Key key);
  uint64_t Want(const EmbeddingTable& table, Key key);
  Status Install(const RowFetch::Row& row);
  void Send();

  ShardSet& shards_;
  RowsBelow& below_;
  DiskThreads& disk_;
  TierProgress& progress_;
  std::vector<EmbeddingTable::AbsentKey> absent_;  // A member only to reuse its memory.
  std::unique_ptr<RowFetch> gathered_;             // Fetch number sent_ + 1, not sent yet.
  uint64_t sent_ = 0, done_ = 0;                   // Numbers of fetches so far.
  // Rows under way, and the numbers of their fetches.
  absl::flat_hash_map<RowKey, uint64_t> wanted_;
  absl::flat_hash_set<uint64_t> awaited_;  // Fetches whose end completes the rows of some request.
};

}  // namespace dt::server
