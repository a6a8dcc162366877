// The rows of one executor on disk: files in a folder of its own, which is made with the first file
// and removed with this object. For the writer's thread, unless a function says otherwise.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/cluster/checkpoint_file.h"
#include "common/storage/rocksdb_rows.h"
#include "common/storage/scratch_dir.h"
#include "server/storage/row_run.h"

namespace dt::server {

// Rows to read, and the answer: `record` is empty if the disk has no such row.
struct RowFetch {
  struct Row {
    RowKey key;
    std::span<const std::byte> record{};
  };
  std::vector<Row> rows;
  uint64_t bytes_max = 0;  // All records together are not larger.
  std::vector<std::byte> records;
  Status status;
};

struct CheckpointTask {
  std::string folder;  // Must not exist yet; its parents are made.
  std::string name;    // The folder's path relative to the checkpoint.
  // Records other than rows, ascending by key: the header and the states (row_keys.h).
  std::vector<std::pair<std::string, std::string>> notes;
  // The results.
  std::vector<CheckpointFile> files;
  Status status;
};

class RowFiles {
 public:
  // The folder is made in `parent` (common/storage/scratch_dir.h).
  RowFiles(std::string parent, RowsDb::Options options);

  // Starts from the files of a checkpoint, without what they have of shards other than `held`
  // (ascending). Any thread, before any other use.
  Status Adopt(const std::string& checkpoint, std::span<const ShardId> held);

  // Waits while so many files overlap that reads get slow; `stop` ends the wait.
  Status Write(const RowRun& run, const std::stop_token& stop);
  // Removes everything that is there of the shard.
  Status Remove(ShardId shard);
  // Files that have not changed since the last checkpoint are neither copied nor read again.
  Status MakeCheckpoint(CheckpointTask& task);

  // Any thread. Rows that are being written at the same time may be found or not.
  void Read(RowFetch& fetch) const;
  // Any thread; null until there are files.
  RowsDb* db() const { return db_.load(); }

 private:
  Status MakeFolder();
  Status Open();
  Status OpenAdopted(std::span<const ShardId> held);
  Status RemoveAllBut(std::span<const ShardId> held);
  Status Digest(CheckpointTask& task);
  Result<CheckpointFile> DigestOnce(const std::string& path, const std::string& name) const;

  const std::string parent_;
  const RowsDb::Options options_;
  std::optional<ScratchDir> scratch_;
  std::string folder_;  // Inside scratch_.
  std::unique_ptr<RowsDb> own_db_;
  std::atomic<RowsDb*> db_ = nullptr;
  // By name, for files that never change.
  absl::flat_hash_map<std::string, CheckpointFile> digests_;
};

}  // namespace dt::server
