// Which rows of an executor are below its memory, and where. The current copy of a row is in
// memory; else in the newest run that has it; else on disk. Copies below the current one are older
// or equal, and are never read.
//
//   memory ──Add──▶ open run ──Seal──▶ runs under way, oldest first ──written──▶ disk
//
// The evictor and the saver fill the open run; the fetcher reads from all stages. Owned by the
// executor's thread; runs under way are constant, and the writer's thread reads them, too.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "server/storage/disk_threads.h"
#include "server/storage/expiry_filter.h"
#include "server/storage/key_filter.h"
#include "server/storage/row_run.h"
#include "server/table/embedding_table.h"

namespace dt::server {

class RowsBelow : public RowSink {
 public:
  struct Options {
    uint64_t run_bytes = 0;    // A run of this size is sealed.
    uint64_t filter_keys = 0;  // The number of keys for which the filter is sized.
  };
  // The other objects outlive it.
  RowsBelow(const Options& options, const ShardSet& shards, ExpiryFilter& expired,
            DiskThreads& disk);

  // Returns space for a record on its way to disk.
  std::span<std::byte> Add(EmbeddingTable& table, Key key) override;
  void Left(EmbeddingTable& table, Key key) override;
  // Called when a row that was below is in memory again.
  void NoteBack(EmbeddingTable& table);
  // Called if the filter lets the key pass, but there is no such row.
  void NoteNowhere(const RowKey& row);

  // Exact, except that expired rows may be counted; never too low.
  uint64_t rows() const { return rows_; }
  // The record in the open run or in one under way; empty if none of them has it.
  std::span<const std::byte> FindOnItsWay(const RowKey& row) const;
  // False: the row is certainly not below memory.
  bool MayHave(const RowKey& row) const;
  bool IsNowhere(const RowKey& row) const { return nowhere_.contains(row); }
  // Prefetches what MayHave will read.
  void PrefetchFilter(const RowKey& row) const;
  // Called when a shard of the executor is gone: `rows` of its rows were below memory.
  void OnShardGone(uint64_t rows) { rows_ -= rows; }

  // Closes the open run, however small, and gives it to the disk.
  void Seal();
  // Called when the disk has written the oldest run.
  void OnWritten(const std::shared_ptr<const RowRun>& run);
  const std::deque<std::shared_ptr<const RowRun>>& runs() const { return runs_; }
  uint64_t written() const { return written_; }  // The number of runs written so far.
  // True if the disk has not accepted all runs yet; what must come after them has to wait.
  bool runs_wait() const { return given_ < runs_.size(); }

  // While a checkpoint is being saved, expired rows are not removed: they may have been alive at
  // its cut.
  void SetSaving(bool saving) { saving_ = saving; }
  bool saving() const { return saving_; }

  uint64_t run_bytes() const { return options_.run_bytes; }
  uint64_t filter_bytes() const { return filter_.bytes(); }
  uint64_t bytes() const;  // Memory in use.

 private:
  void GiveRuns();

  const Options options_;
  const ShardSet& shards_;
  ExpiryFilter& expired_;
  DiskThreads& disk_;
  RowRun open_run_;
  std::deque<std::shared_ptr<const RowRun>> runs_;  // Runs under way, oldest first.
  size_t given_ = 0;                                // The disk has accepted this many of runs_.
  KeyFilter filter_;
  absl::flat_hash_set<RowKey> nowhere_;
  uint64_t rows_ = 0, written_ = 0;
  bool saving_ = false;
};

}  // namespace dt::server
