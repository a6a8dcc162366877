// What the disk does for one executor, on two threads of their own: one writes runs of rows and
// makes checkpoints, in order; the other reads rows. The executor's thread gives them work and
// takes back what they have done.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "common/cluster/checkpoint_file.h"
#include "common/runtime/bounded_queue.h"
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
  std::string folder;  // Must not exist, but its parent.
  std::string name;    // Of the folder, from the checkpoint's on.
  // Records of other kinds than rows, by key, ascending; their keys are before all rows'.
  std::vector<std::pair<std::string, std::string>> notes;
  // The answer.
  std::vector<CheckpointFile> files;
  Status status;
};

class DiskThreads {
 public:
  struct Options {
    std::string folder;  // The parent of this object's own folder (common/storage/scratch_dir.h).
    RowsDb::Options rows;
    std::function<void()> wake;  // Called on their threads when something is done; must not block.
  };
  explicit DiskThreads(Options options);
  ~DiskThreads();

  // The executor's thread. Runs are written in this order, each tried again until it succeeds.
  void Write(std::shared_ptr<const RowRun> run);
  void Make(std::unique_ptr<CheckpointTask> task);
  void Fetch(std::unique_ptr<RowFetch> fetch);

  struct Done {  // Exactly one of them is set.
    std::shared_ptr<const RowRun> written;
    std::unique_ptr<CheckpointTask> made;
    std::unique_ptr<RowFetch> fetched;
  };
  std::optional<Done> Take(Duration patience) { return done_.Pop(patience); }
  // Why the run that is being written is not yet; OK while all goes well.
  Status write_problem() const;

  // Any thread; null until the first run is written or checkpoint made.
  RowsDb* db() const { return db_.load(); }
  // Opens with the rows of a checkpoint's folder. Call it before any other work.
  Status Adopt(const std::string& checkpoint);

 private:
  using WriteTask = std::variant<std::shared_ptr<const RowRun>, std::unique_ptr<CheckpointTask>>;
  void RunWriter(std::stop_token stop);
  void RunReader(std::stop_token stop);
  Status MakeFolder();
  Status Open();
  Status WriteRun(const RowRun& run, std::stop_token stop);
  // Sleeps. False if `stop` was requested.
  bool Rest(Duration time, std::stop_token stop);
  Status MakeCheckpoint(CheckpointTask& task);
  Status Digest(CheckpointTask& task);
  void NoteProblem(Status status);
  void Finish(Done done);

  const Options options_;
  std::optional<ScratchDir> scratch_;
  std::string folder_;  // The folder of rows in scratch_.
  std::unique_ptr<RowsDb> own_db_;
  std::atomic<RowsDb*> db_ = nullptr;
  absl::flat_hash_map<std::string, CheckpointFile> digests_;  // Digests of files that never change.

  BoundedQueue<WriteTask> writes_{1 << 20};
  BoundedQueue<std::unique_ptr<RowFetch>> fetches_{1 << 20};
  BoundedQueue<Done> done_{1 << 20};
  mutable std::mutex mutex_;
  std::condition_variable_any resting_;
  Status problem_;

  std::jthread writer_, reader_;  // Last.
};

}  // namespace dt::server
