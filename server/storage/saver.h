// Saves the rows of one executor as they were at a cut. At the cut a new period of changes begins,
// and all rows changed in the previous one go to disk: the saver walks over the indexes, and a row
// that is about to change before the walk reaches it is saved first. Then the disk's files are
// linked into the checkpoint, so that unchanged files cost nothing.
//
//   idle ──Begin──▶ walking ──all runs given──▶ the writer makes the checkpoint ──▶ idle
//
// Owned by the executor's thread.
#pragma once

#include <memory>
#include <vector>

#include "server/shard/shard_set.h"
#include "server/storage/disk_threads.h"
#include "server/storage/rows_below.h"

namespace dt::server {

class Saver {
 public:
  // The other objects outlive it.
  Saver(ShardSet& shards, RowsBelow& below, DiskThreads& disk)
      : shards_(shards), below_(below), disk_(disk) {}
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Begins a checkpoint of the current rows, which ends in TakeSaved. It fails if another is under
  // way. None of its shards may be removed while saving().
  void Begin(std::unique_ptr<CheckpointTask> task);
  // Continues the walk for some milliseconds.
  void Work();
  // Called while the disk cannot write: a checkpoint that the disk does not have yet fails. The
  // walk goes on until all changes of its period are saved.
  void FailUnlessGiven(const Status& problem);
  void OnMade(std::unique_ptr<CheckpointTask> task);

  bool saving() const { return stage_ != Stage::kIdle; }
  bool walking() const { return stage_ == Stage::kWalking; }
  // A checkpoint that has ended, with or without success; returned once.
  std::unique_ptr<CheckpointTask> TakeSaved() { return std::move(saved_); }

 private:
  enum class Stage { kIdle, kWalking, kWalked, kGiven };
  // The table that is being walked; null after the last one.
  EmbeddingTable* Table();
  void Walk();
  void Give();
  void End();

  ShardSet& shards_;
  RowsBelow& below_;
  DiskThreads& disk_;
  Stage stage_ = Stage::kIdle;
  uint32_t change_period_ = 0;             // Rows changed in this period are to be saved.
  std::vector<ShardId> walked_shards_;     // Those of the checkpoint.
  size_t shard_ = 0;                       // Which of them is being walked,
  uint32_t table_ = 0;                     // which of its tables,
  uint64_t position_ = 0;                  // and where in the table's index.
  std::unique_ptr<CheckpointTask> task_;   // Null after it failed or was given to the disk.
  std::unique_ptr<CheckpointTask> saved_;  // The ended checkpoint, until it is taken.
};

}  // namespace dt::server
