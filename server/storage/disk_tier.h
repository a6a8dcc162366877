// The tier below the memory of one executor's shards. Cold rows leave memory in sorted runs
// (clock with counts, key_index.h), and come back when a request needs them. A row is current in
// one place: in memory; else in the newest run on its way to disk that has it; else on disk. What
// lies below a current row is old or equal, and never looked at.
//
// Checkpoints: at the cut the epoch changes. All rows changed before go to disk: the save walks
// over the index, and a row that changes ahead of it is saved first, as it was. Then the disk's
// files are linked into the checkpoint: unchanged files cost nothing.
//
// Owned by the executor's thread.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "server/shard/residency.h"
#include "server/shard/shard_set.h"
#include "server/storage/disk_threads.h"
#include "server/storage/gone_before.h"
#include "server/storage/key_filter.h"

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
  DiskTier(DiskTierOptions options, ShardSet& shards);
  ~DiskTier() override;

  bool Resident(std::span<const EmbeddingTable::KeyRun> runs) override;
  bool Writable(std::span<const EmbeddingTable::KeyRun> runs) override;
  bool below() const override { return rows_below_ != 0; }
  uint64_t bytes_max() const override;
  void PutBelow(EmbeddingTable& table, Key key, std::span<const std::byte> record,
                bool on_disk) override;
  uint64_t progress() const override { return progress_; }

  // Takes back what the disk has done, makes room, goes on with a save. At every turn of the loop.
  void Work();
  // Work() has something to do by itself, without waiting for the disk.
  bool busy() const { return save_ != nullptr && !save_->walked; }
  // Not OK: it can serve no more.
  Status failure() const { return failure_; }

  // A checkpoint of now. REQUIRES: none is under way.
  void BeginSave(std::unique_ptr<CheckpointTask> task);
  bool saving() const { return save_ != nullptr; }
  // When it is done, well or not; once.
  std::unique_ptr<CheckpointTask> TakeSaved() { return std::move(saved_); }

  // Instead of an empty disk: the rows in a folder of a checkpoint, which are those of these
  // shards. The caller restores each, as one that is on disk, with MakeRoom in between.
  Status Adopt(const std::string& checkpoint);
  // Makes room for more rows, and waits for the disk where it must.
  Status MakeRoom();

  // Rows that are not in memory, as of now: every one once. Waits for writes under way.
  using Visit =
      std::function<void(const EmbeddingTable& table, Key key, std::span<const std::byte> record)>;
  Status VisitRowsBelow(const Visit& visit);
  // Exact, but that rows which are gone may be counted.
  uint64_t rows_below() const { return rows_below_; }
  uint64_t bytes() const;  // Of memory, beside the shards'.
  uint64_t disk_bytes() const;

 private:
  struct Save {
    std::unique_ptr<CheckpointTask> task;
    uint32_t epoch = 0;  // Rows changed in it are to be saved.
    size_t table = 0;    // Where the walk is, of all tables of all shards.
    uint64_t at = 0;
    bool walked = false, asked = false;
  };
  class Sink;
  using Place = std::pair<const EmbeddingTable*, Key>;

  void TakeDone(Duration patience);
  void NoteProgress();
  void Install(RowFetch& fetch);
  bool Reinstall(EmbeddingTable& table, Key key);
  void Want(EmbeddingTable& table, Key key);
  void Evict();
  void NoteOnDisk(EmbeddingTable& table, Key key);
  void NoteBack(EmbeddingTable& table);
  void Seal();
  void SaveSome();
  void EndSave(std::unique_ptr<CheckpointTask> task);
  Status WaitForWrites(size_t runs_left);

  const DiskTierOptions options_;
  const uint64_t run_bytes_, cache_bytes_;
  ShardSet& shards_;
  const std::vector<EmbeddingTable*> tables_;  // Of all shards.
  std::vector<EmbeddingTable*> evictable_;     // Those that need not stay.
  std::unique_ptr<Sink> sink_;
  GoneBefore gone_;

  RowRun open_run_;
  std::deque<std::shared_ptr<const RowRun>> runs_;  // Being written, oldest first.
  KeyFilter filter_;
  absl::flat_hash_map<Place, uint64_t> wanted_;    // Being read, by which fetch; from 1.
  absl::flat_hash_set<Place> nowhere_;             // The filter let them pass, but there is no row.
  std::unique_ptr<RowFetch> fetch_;                // Being gathered.
  uint64_t fetches_begun_ = 0, fetches_done_ = 0;  // In one order.
  absl::flat_hash_set<uint64_t> awaited_;          // Fetches with which somebody's rows are there.
  bool behind_ = false;                            // Somebody waits until a run is written.
  std::vector<EmbeddingTable::AbsentKey> absent_;

  std::unique_ptr<Save> save_;
  std::unique_ptr<CheckpointTask> saved_;
  uint64_t rows_below_ = 0;
  uint64_t progress_ = 0;
  size_t hand_ = 0;       // Of evictable_.
  uint64_t swept_ = 0;    // Buckets since the last progress.
  bool waiting_ = false;  // Somebody was told to ask again.
  Status failure_;
  TimePoint full_since_{};
  std::unique_ptr<DiskThreads> disk_;  // Last: its threads end first.
};

}  // namespace dt::server
