// SIGINT, SIGTERM and SIGHUP as a stop request to who heeds it; while nobody does, they end the
// process at once, as a second one does that comes half a second after the first or later. One per
// process, made before any other thread.
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace dt::cli {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // From now on somebody looks at received() now and then, …
  void Heed() { heeded_ = true; }
  // … or at this.
  std::stop_token token() {
    Heed();
    return source_.get_token();
  }
  // The number of the first signal that came; 0 if none.
  int received() const { return received_.load(); }
  // 129, 130 or 143, as shells report a signal. REQUIRES: received() != 0.
  int exit_code() const { return 128 + received_.load(); }

 private:
  std::stop_source source_;
  std::atomic<bool> heeded_{false};
  std::atomic<int> received_{0};
  std::jthread thread_;  // Waits for the signals; last.
};

}  // namespace dt::cli
