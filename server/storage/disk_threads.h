// The two threads of one executor's disk: the writer writes runs of rows and makes checkpoints, in
// the order in which they came; the reader reads rows. The executor's thread gives them work and
// takes back what they have done.
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
    std::string folder;  // The parent of the folder of the files.
    RowsDb::Options rows;
    std::function<void()> wake;  // Called on their threads when something is done; must not block.
  };
  explicit DiskThreads(Options options);
  ~DiskThreads();

  // The executor's thread. False: so much is under way that more must wait; try again when
  // something is done. A run is tried until it is written.
  [[nodiscard]] bool TryWrite(const std::shared_ptr<const RowRun>& run);
  [[nodiscard]] bool TryMake(std::unique_ptr<CheckpointTask>& task);
  [[nodiscard]] bool TryFetch(std::unique_ptr<RowFetch>& fetch);

  struct Done {  // Exactly one of them is set.
    std::shared_ptr<const RowRun> written;
    std::unique_ptr<CheckpointTask> made;
    std::unique_ptr<RowFetch> fetched;
  };
  std::optional<Done> Take(Duration timeout);
  // Why the run that is being written is not yet; OK while all goes well.
  Status write_problem() const;

  // Any thread; null until the first run is written or checkpoint made.
  RowsDb* db() const { return files_.db(); }
  // Begins with the rows of a checkpoint's folder. REQUIRES: no other work was given before.
  Status Adopt(const std::string& checkpoint) { return files_.Adopt(checkpoint); }

 private:
  using WriteTask = std::variant<std::shared_ptr<const RowRun>, std::unique_ptr<CheckpointTask>>;
  static constexpr size_t kWritesMax = 4, kFetchesMax = 64;  // Given, and not taken back.

  void RunWriter(const std::stop_token& stop);
  void RunReader(const std::stop_token& stop);
  // False if `stop` was requested before it succeeded.
  bool WriteAtLast(const RowRun& run, const std::stop_token& stop);
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

  std::jthread writer_, reader_;  // Last: they start when the rest exists, and end before it goes.
};

}  // namespace dt::server
