// Brings rows back to memory: from a run on its way to disk at once, from the disk by its reader's
// thread. Those who wait for rows ask again when the progress says so.
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
  // All of them outlive it.
  Fetcher(RowsBelow& below, DiskThreads& disk, TierProgress& progress)
      : below_(below), disk_(disk), progress_(progress) {}

  // True if every row of the runs is in memory, or nowhere. Else reads of the others have begun.
  bool EnsureInMemory(std::span<const EmbeddingTable::KeyRun> runs);
  // The rows that the disk has read come to memory. An error: of the disk, or DataLoss.
  Status OnFetched(const RowFetch& fetch);

 private:
  using Row = std::pair<const EmbeddingTable*, Key>;

  // The number of the fetch that brings the row; 0: none is needed.
  uint64_t Bring(EmbeddingTable& table, Key key);
  bool BringFromRun(EmbeddingTable& table, Key key);
  uint64_t Want(EmbeddingTable& table, Key key);
  Status Install(const RowFetch::Row& row);
  void Send();

  RowsBelow& below_;
  DiskThreads& disk_;
  TierProgress& progress_;
  std::vector<EmbeddingTable::AbsentKey> absent_;  // Memory that is kept between calls.
  // Fetches are numbered from 1, and done in that order.
  std::unique_ptr<RowFetch> gathered_;         // Number sent_ + 1: not sent yet.
  uint64_t sent_ = 0, done_ = 0;               // Fetches so far.
  absl::flat_hash_map<Row, uint64_t> wanted_;  // Rows under way, and by which fetch.
  absl::flat_hash_set<uint64_t> awaited_;      // Fetches with which somebody's rows are there.
};

}  // namespace dt::server
