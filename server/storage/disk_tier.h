// The tier below the memory of one executor's shards. Its parts, all owned by the executor's
// thread:
//
//   RowsBelow   the common core: which rows are below memory, and where
//   Evictor     makes room: writes cold rows out in runs
//   Fetcher     returns rows to memory, for requests that wait and for prefetches
//   Saver       makes checkpoints while training goes on
//   Removals    removes the rows of shards that have left the executor
//   DiskThreads the writer's and the reader's thread, and the files that these write and read
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "server/shard/residency.h"
#include "server/shard/shard_set.h"
#include "server/storage/disk_threads.h"
#include "server/storage/evictor.h"
#include "server/storage/expiry_filter.h"
#include "server/storage/fetcher.h"
#include "server/storage/removals.h"
#include "server/storage/rows_below.h"
#include "server/storage/saver.h"
#include "server/storage/tier_progress.h"

namespace dt::server {

struct DiskTierOptions {
  std::string folder;  // The parent of the tier's folder, which is made when it is first needed.
  uint64_t memory_bytes = 0;  // The executor's budget: rows, indexes and the tier's own memory.
  std::function<void()> wake;
  uint64_t open_files = 1024;  // See RowsDb::Options.
};

class DiskTier : public Residency {
 public:
  // `shards` outlives it.
  DiskTier(const DiskTierOptions& options, ShardSet& shards);

  bool EnsureInMemory(std::span<const EmbeddingTable::KeyRun> runs) override;
  bool EnsureWritable(std::span<const EmbeddingTable::KeyRun> runs) override;
  bool has_rows() const override { return below_.rows() != 0; }
  uint64_t bytes_max() const override { return evictor_.bytes_max(); }
  void PutBelow(EmbeddingTable& table, Key key, std::span<const std::byte> record,
                bool on_disk) override;
  uint64_t progress() const override { return progress_.count(); }

  // One turn of the executor's loop: takes back what the disk has done, makes room, continues a
  // save.
  void Work();
  // True if Work() has something to do without waiting for the disk.
  bool busy() const { return saver_.walking(); }
  // Call it when the shard is about to leave the set. REQUIRES: not saving().
  void Remove(const Shard& shard);
  // True until nothing of such a shard is left.
  bool removing(ShardId shard) const { return removals_.Contains(shard); }
  // If not OK, the tier cannot go on.
  Status failure() const { return failure_; }

  // Begins a checkpoint of the current rows. It fails if another is under way.
  void BeginSave(std::unique_ptr<CheckpointTask> task) { saver_.Begin(std::move(task)); }
  bool saving() const { return saver_.saving(); }
  // A checkpoint that has ended, with or without success; returned once.
  std::unique_ptr<CheckpointTask> TakeSaved() { return saver_.TakeSaved(); }

  // Starts from the rows in a checkpoint's folder, which holds these shards. The caller then
  // restores each of their rows with `on_disk` set, and calls MakeRoom in between.
  Status Adopt(const std::string& checkpoint);
  // Makes room for more rows; waits for the disk if it must.
  Status MakeRoom();

  // Visits every row that is not in memory once. Waits for writes under way.
  using Visit =
      std::function<void(const EmbeddingTable& table, Key key, std::span<const std::byte> record)>;
  Status VisitRowsBelow(const Visit& visit);
  // For a shard that is copied while requests go on. All rows that are below memory now are on disk
  // once runs_written() has reached what BeginReading returns; then Read gives what the disk has,
  // null if it has nothing.
  uint64_t BeginReading();
  uint64_t runs_written() const { return below_.written(); }
  std::unique_ptr<RowsDb::Cursor> Read() const;

  // Exact, except that expired rows may be counted.
  uint64_t rows_below() const { return below_.rows(); }
  uint64_t bytes() const;  // The tier's own memory, without that of the shards.
  uint64_t disk_bytes() const { return disk_.db() ? disk_.db()->bytes_on_disk() : 0; }

 private:
  DiskThreads::Options DiskOptions(const DiskTierOptions& options) const;
  void TakeDone(Duration timeout);
  void CheckDisk();
  Status WaitForWrites(size_t runs_left);

  const TierBudget budget_;
  ShardSet& shards_;
  ExpiryFilter expired_;  // Read by the threads that merge files.
  DiskThreads disk_;
  RowsBelow below_;
  TierProgress progress_;
  Evictor evictor_;
  Fetcher fetcher_;
  Saver saver_;
  Removals removals_;
  bool behind_ = false;  // Some push waits until a run is written.
  TimePoint full_since_{};
  Status failure_;
};

}  // namespace dt::server
