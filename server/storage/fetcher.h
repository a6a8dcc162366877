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
#include "server/storage/disk_threads.h"
#include "server/storage/rows_below.h"
#include "server/storage/tier_progress.h"

namespace dt::server {

class Fetcher {
 public:
  // All arguments outlive it.
  Fetcher(RowsBelow& below, DiskThreads& disk, TierProgress& progress)
      : below_(below), disk_(disk), progress_(progress) {}

  // True if every row of the runs is in memory or does not exist. Otherwise it has begun to read
  // the missing rows.
  bool EnsureInMemory(std::span<const EmbeddingTable::KeyRun> runs);
  // Puts the rows that the disk has read into memory. Errors: those of the disk, and DataLoss.
  Status OnFetched(const RowFetch& fetch);

 private:
  using Row = std::pair<const EmbeddingTable*, Key>;

  // The number of the fetch that returns the row; 0: none is needed.
  uint64_t Bring(EmbeddingTable& table, Key key);
  bool BringFromRun(EmbeddingTable& table, Key key);
  uint64_t Want(EmbeddingTable& table, Key key);
  Status Install(const RowFetch::Row& row);
  void Send();

  RowsBelow& below_;
  DiskThreads& disk_;
  TierProgress& progress_;
  std::vector<EmbeddingTable::AbsentKey> absent_;  // A member only to reuse its memory.
  // Fetches are numbered from 1, and end in that order.
  std::unique_ptr<RowFetch> gathered_;         // Fetch number sent_ + 1, not sent yet.
  uint64_t sent_ = 0, done_ = 0;               // Numbers of fetches so far.
  absl::flat_hash_map<Row, uint64_t> wanted_;  // Rows under way, and the numbers of their fetches.
  absl::flat_hash_set<uint64_t> awaited_;  // Fetches whose end completes the rows of some request.
};

}  // namespace dt::server
