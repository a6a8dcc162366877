// The tier below the memory of one executor's shards. Its parts, all owned by the executor's
// thread:
//
//   RowsBelow   the common core: which rows are below memory, and where
//   Evictor     makes room: cold rows leave in runs
//   Fetcher     brings rows back for those who wait, and for those who said that they will come
//   Saver       makes checkpoints while training goes on
//   DiskThreads the writer's and the reader's thread, and the files that these write and read
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/shard/residency.h"
#include "server/shard/shard_set.h"
#include "server/storage/disk_threads.h"
#include "server/storage/evictor.h"
#include "server/storage/expiry_filter.h"
#include "server/storage/fetcher.h"
#include "server/storage/rows_below.h"
#include "server/storage/saver.h"
#include "server/storage/tier_progress.h"

namespace dt::server {

struct DiskTierOptions {
  std::string folder;         // The parent of its own folder, which is made at first need.
  uint64_t memory_bytes = 0;  // For all of the executor: rows, indexes, and what the tier needs.
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

  // Takes back what the disk has done, makes room, goes on with a save. At every turn of the loop.
  void Work();
  // Work() has something to do by itself, without waiting for the disk.
  bool busy() const { return saver_.walking(); }
  // Not OK: it can serve no more.
  Status failure() const { return failure_; }

  // A checkpoint of now. It fails if another is under way.
  void BeginSave(std::unique_ptr<CheckpointTask> task) { saver_.Begin(std::move(task)); }
  bool saving() const { return saver_.saving(); }
  // A checkpoint that is done, well or not; once.
  std::unique_ptr<CheckpointTask> TakeSaved() { return saver_.TakeSaved(); }

  // Begins with the rows in a folder of a checkpoint, which are those of these shards. The caller
  // restores each, as one that is on disk, with MakeRoom in between.
  Status Adopt(const std::string& checkpoint) { return disk_.Adopt(checkpoint); }
  // Makes room for more rows, and waits for the disk where it must.
  Status MakeRoom();

  // Rows that are not in memory, as of now: every one once. Waits for writes under way.
  using Visit =
      std::function<void(const EmbeddingTable& table, Key key, std::span<const std::byte> record)>;
  Status VisitRowsBelow(const Visit& visit);
  // Exact, but that rows which have expired may be counted.
  uint64_t rows_below() const { return below_.rows(); }
  uint64_t bytes() const;  // Of memory, beside the shards'.
  uint64_t disk_bytes() const { return disk_.db() ? disk_.db()->bytes_on_disk() : 0; }

 private:
  DiskThreads::Options DiskOptions(const DiskTierOptions& options) const;
  void TakeDone(Duration timeout);
  void CheckDisk();
  Status WaitForWrites(size_t runs_left);

  const TierBudget budget_;
  ShardSet& shards_;
  const std::vector<EmbeddingTable*> tables_;  // Of all shards.
  ExpiryFilter expired_;                       // Asked by threads that merge files.
  DiskThreads disk_;
  RowsBelow below_;
  TierProgress progress_;
  Evictor evictor_;
  Fetcher fetcher_;
  Saver saver_;
  bool behind_ = false;  // Somebody waits until a run is written.
  TimePoint full_since_{};
  Status failure_;
};

}  // namespace dt::server
