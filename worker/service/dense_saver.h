// Writes dense parameters into a checkpoint while training goes on. Owned by the train thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "common/base/mutex.h"
#include "common/control/messages.h"
#include "worker/memory/parameters.h"

namespace dt::worker {

class DenseSaver {
 public:
  // `written` is called when a file is complete, by the thread that has written it. Without threads
  // that is the caller of Start.
  DenseSaver(bool threads, std::function<void(RowsWrittenMessage)> written)
      : threads_(threads), written_(std::move(written)) {}

  // Copies the values, when the file before is written. Returns whether this worker has any to
  // write.
  bool Prepare(uint64_t order, const std::string& folder, const Parameters& values);
  // Begins to write what is prepared. Call it when the order is answered.
  void Start();
  // Why a file could not be written. Any thread.
  Status problem() const {
    MutexLock lock(mutex_);
    return problem_;
  }

 private:
  struct Save {
    uint64_t order = 0;
    std::string folder;
    Parameters values;
  };
  void Write(const Save& save);

  const bool threads_;
  const std::function<void(RowsWrittenMessage)> written_;
  std::optional<Save> prepared_;
  mutable Mutex mutex_;
  Status problem_ DT_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace dt::worker
