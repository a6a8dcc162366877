// How far a pass has come: which of its subgraphs have ended, or the error that stopped it. Streams
// and the train thread wait here for one another. Any thread.
#pragma once

#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"

namespace dt::worker {

class Progress {
 public:
  // Begins a pass of this many streams. REQUIRES: the streams of the pass before have left.
  void Begin(size_t subgraphs, size_t streams) {
    MutexLock lock(mutex_);
    ended_.assign(subgraphs, false);
    streams_ = streams;
    has_rows_ = false;
    status_ = OkStatus();
  }
  // Called by a stream that has nothing to do with this pass any more.
  void Leave() {
    MutexLock lock(mutex_);
    --streams_;
    changed_.NotifyAll();
  }
  void End(uint32_t subgraph) {
    MutexLock lock(mutex_);
    ended_[subgraph] = true;
    changed_.NotifyAll();
  }
  void GiveRows() {
    MutexLock lock(mutex_);
    has_rows_ = true;
    changed_.NotifyAll();
  }
  // Every wait returns `status` from now on; the first failure counts.
  void Fail(Status status) {
    MutexLock lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
    changed_.NotifyAll();
  }

  Status WaitForRows(Duration timeout) {
    const TimePoint deadline = SystemClock().Now() + timeout;
    MutexLock lock(mutex_);
    while (status_.ok() && !has_rows_ && changed_.WaitUntil(lock, deadline)) {
    }
    if (!status_.ok()) return status_;
    return has_rows_ ? OkStatus() : Late(timeout);
  }
  Status WaitFor(uint32_t subgraph, Duration timeout) {
    const TimePoint deadline = SystemClock().Now() + timeout;
    MutexLock lock(mutex_);
    while (status_.ok() && !ended_[subgraph] && changed_.WaitUntil(lock, deadline)) {
    }
    if (!status_.ok()) return status_;
    return ended_[subgraph] ? OkStatus() : Late(timeout);
  }
  // Waits until all streams have left; also after a failure, which ends their waits.
  Status WaitForStreams(Duration timeout) {
    const TimePoint deadline = SystemClock().Now() + timeout;
    MutexLock lock(mutex_);
    while (streams_ != 0 && changed_.WaitUntil(lock, deadline)) {
    }
    if (!status_.ok()) return status_;
    return streams_ == 0 ? OkStatus() : Late(timeout);
  }
  Status status() const {
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  static Status Late(Duration timeout) {
    return Timeout("a stream of the engine did not answer within {} s",
                   std::chrono::duration_cast<std::chrono::seconds>(timeout).count());
  }

  mutable Mutex mutex_;
  Condition changed_;
  std::vector<bool> ended_ DT_GUARDED_BY(mutex_);
  size_t streams_ DT_GUARDED_BY(mutex_) = 0;
  bool has_rows_ DT_GUARDED_BY(mutex_) = false;
  Status status_ DT_GUARDED_BY(mutex_);
};

}  // namespace dt::worker
