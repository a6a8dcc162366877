// The rows of one executor on disk: files in a folder of its own, which begins with the first of
// them and goes with this object. The writer's thread, unless a function says otherwise.
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

// Rows to read; `found` and `records` are the answer: empty where the disk has none.
struct RowFetch {
  struct Row {
    EmbeddingTable* table;
    Key key;
    std::span<const std::byte> record{};
  };
  std::vector<Row> rows;
  std::vector<std::byte> records;
  Status status;
};

struct CheckpointTask {
  std::string folder;  // Must not exist; its parents are made.
  std::string name;    // The folder's path below the checkpoint's.
  // Records of other kinds than rows, by key, ascending; their keys are before those of all rows.
  std::vector<std::pair<std::string, std::string>> notes;
  // The answer.
  std::vector<CheckpointFile> files;
  Status status;
};

class RowFiles {
 public:
  // `parent`: where the folder is made (common/storage/scratch_dir.h).
  RowFiles(std::string parent, RowsDb::Options options);

  // Before any other use, on any thread: begins with the files of a checkpoint.
  Status Adopt(const std::string& checkpoint);

  // Waits while so many files lie over one another that reading gets slow; `stop` ends the wait.
  Status Write(const RowRun& run, const std::stop_token& stop);
  // Files that have not changed since the last checkpoint are neither copied nor read again.
  Status MakeCheckpoint(CheckpointTask& task);

  // Any thread. Rows that are being written meanwhile may be found or not.
  void Read(RowFetch& fetch) const;
  // Any thread; null until there are files.
  RowsDb* db() const { return db_.load(); }

 private:
  Status MakeFolder();
  Status Open();
  Status Digest(CheckpointTask& task);
  Result<CheckpointFile> DigestOnce(const std::string& path, const std::string& name) const;

  const std::string parent_;
  const RowsDb::Options options_;
  std::optional<ScratchDir> scratch_;
  std::string folder_;  // In scratch_.
  std::unique_ptr<RowsDb> own_db_;
  std::atomic<RowsDb*> db_ = nullptr;
  // By name, of files that never change.
  absl::flat_hash_map<std::string, CheckpointFile> digests_;
};

}  // namespace dt::server
