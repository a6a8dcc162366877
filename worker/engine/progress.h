// How far a pass has come: which of its subgraphs have ended, or why none will any more. Streams
// and the train thread wait here for one another. Any thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace dt::worker {

class Progress {
 public:
  // A new pass of so many streams. REQUIRES: the streams of the one before have left.
  void Begin(size_t subgraphs, size_t streams) {
    std::lock_guard lock(mutex_);
    ended_.assign(subgraphs, false);
    streams_ = streams;
    has_rows_ = false;
    status_ = OkStatus();
  }
  // A stream has nothing to do with this pass any more.
  void Leave() {
    Change([&] { --streams_; });
  }
  void End(uint32_t subgraph) {
    Change([&] { ended_[subgraph] = true; });
  }
  void GiveRows() {
    Change([&] { has_rows_ = true; });
  }
  // Every wait gives this from now on; the first failure counts.
  void Fail(Status status) {
    Change([&] {
      if (status_.ok()) status_ = std::move(status);
    });
  }

  Status WaitForRows(Duration patience) {
    return Wait(patience, [&] { return has_rows_; });
  }
  Status WaitFor(uint32_t subgraph, Duration patience) {
    return Wait(patience, [&] { return ended_[subgraph]; });
  }
  // Until all streams have left; also after a failure, which ends their waits.
  Status WaitForStreams(Duration patience) {
    std::unique_lock lock(mutex_);
    const bool left = changed_.wait_for(lock, patience, [&] { return streams_ == 0; });
    if (!status_.ok()) return status_;
    return left ? OkStatus() : Late(patience);
  }
  Status status() const {
    std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  template <class Body>
  void Change(const Body& body) {
    std::lock_guard lock(mutex_);
    body();
    changed_.notify_all();
  }
  template <class Done>
  Status Wait(Duration patience, const Done& done) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, patience, [&] { return !status_.ok() || done(); });
    if (!status_.ok()) return status_;
    return came ? OkStatus() : Late(patience);
  }
  static Status Late(Duration patience) {
    return Timeout("a stream of the engine did not answer within {} s",
                   std::chrono::duration_cast<std::chrono::seconds>(patience).count());
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> ended_;
  size_t streams_ = 0;
  bool has_rows_ = false;
  Status status_;
};

}  // namespace dt::worker
