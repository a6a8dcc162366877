// Saves the rows of one executor as they were at a cut. At the cut the epoch of changes begins
// anew. All rows changed before go to disk: the saver walks over the indexes, and a row that
// changes ahead of it is saved first, as it was. Then the disk's files are linked into the
// checkpoint: unchanged files cost nothing.
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
  // All of them outlive it. `tables`: of all shards.
  Saver(ShardSet& shards, std::vector<EmbeddingTable*> tables, RowsBelow& below, DiskThreads& disk)
      : shards_(shards), tables_(std::move(tables)), below_(below), disk_(disk) {}
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // A checkpoint of now; its outcome is taken with TakeSaved. Fails if another is under way.
  void Begin(std::unique_ptr<CheckpointTask> task);
  // Goes on with the walk, for some milliseconds.
  void Work();
  // The disk takes nothing: a checkpoint whose rows are not all on their way has failed. The walk
  // goes on, until no change of its epoch is left.
  void FailUnlessGiven(const Status& problem);
  void OnMade(std::unique_ptr<CheckpointTask> task);

  bool saving() const { return stage_ != Stage::kIdle; }
  bool walking() const { return stage_ == Stage::kWalking; }
  // A checkpoint that is done, well or not; once.
  std::unique_ptr<CheckpointTask> TakeSaved() { return std::move(saved_); }

 private:
  enum class Stage { kIdle, kWalking, kWalked, kGiven };
  void Walk();
  void Give();
  void End();

  ShardSet& shards_;
  const std::vector<EmbeddingTable*> tables_;
  RowsBelow& below_;
  DiskThreads& disk_;
  Stage stage_ = Stage::kIdle;
  uint32_t epoch_ = 0;  // Rows changed in it are to be saved.
  size_t table_ = 0;    // Where the walk is: in tables_, and in the index of that table.
  uint64_t position_ = 0;
  std::unique_ptr<CheckpointTask> task_;   // Null once it has failed, or the disk has it.
  std::unique_ptr<CheckpointTask> saved_;  // Until it is taken.
};

}  // namespace dt::server
