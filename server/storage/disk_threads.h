// The two threads of one executor's disk: the writer writes runs of rows, removes shards and makes
// checkpoints, in the order in which they were given; the reader reads rows. The executor's thread
// gives them work and takes back the results.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "common/base/mutex.h"
#include "common/runtime/bounded_queue.h"
#include "server/storage/row_files.h"

namespace dt::server {

class DiskThreads {
 public:
  struct Options {
    std::string folder;  // Where RowFiles makes its folder.
    RowsDb::Options rows;
    std::function<void()> wake;  // Called on the two threads when work is done; must not block.
  };
  explicit DiskThreads(Options options);
  ~DiskThreads();

  // For the executor's thread. False: too much is under way; try again when something is done.
  // After an error, the writer tries a run or a removal again until it is done.
  [[nodiscard]] bool TryWrite(const std::shared_ptr<const RowRun>& run);
  [[nodiscard]] bool TryRemove(ShardId shard);
  [[nodiscard]] bool TryMake(std::unique_ptr<CheckpointTask>& task);
  [[nodiscard]] bool TryFetch(std::unique_ptr<RowFetch>& fetch);

  struct Done {  // Exactly one member is set.
    std::shared_ptr<const RowRun> written;
    std::optional<ShardId> removed;
    std::unique_ptr<CheckpointTask> made;
    std::unique_ptr<RowFetch> fetched;
  };
  std::optional<Done> Take(Duration timeout);
  // Why writing the current run, or removing the current shard, fails; OK while it does not.
  Status write_problem() const;

  // Any thread; null until the first run is written or checkpoint made.
  RowsDb* db() const { return files_.db(); }
  // See RowFiles::Adopt. REQUIRES: no other work was given before.
  Status Adopt(const std::string& checkpoint, std::span<const ShardId> held) {
    return files_.Adopt(checkpoint, held);
  }

 private:
  using WriteTask =
      std::variant<std::shared_ptr<const RowRun>, ShardId, std::unique_ptr<CheckpointTask>>;
  // Limits of work given and not taken back.
  static constexpr size_t kWritesMax = 4, kFetchesMax = 64;

  void RunWriter(const std::stop_token& stop);
  void RunReader(const std::stop_token& stop);
  // Tries until the disk has done it; false if `stop` was requested before.
  bool DoAtLast(const std::function<Status()>& attempt, const std::stop_token& stop);
  void Give(WriteTask task);
  void NoteProblem(Status status);
  void Finish(Done done);

  const std::function<void()> wake_;
  RowFiles files_;

  // Touched by the executor's thread only.
  size_t writes_under_way_ = 0, fetches_under_way_ = 0;
  // Any thread.
  BoundedQueue<WriteTask> writes_{kWritesMax};
  BoundedQueue<std::unique_ptr<RowFetch>> fetches_{kFetchesMax};
  BoundedQueue<Done> done_{kWritesMax + kFetchesMax};
  mutable Mutex mutex_;
  Status problem_ DT_GUARDED_BY(mutex_);

  // Declared last: they start when the rest exists, and end before it is destroyed.
  std::jthread writer_, reader_;
};

}  // namespace dt::server
