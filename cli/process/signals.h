// Turns SIGINT, SIGTERM and SIGHUP into a stop request, once Heed or token was called. Before that
// they end the process at once; so does a second signal that comes half a second or more after the
// first. One object per process, made before any other thread.
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

  // From now on the caller polls received().
  void Heed() { heeded_ = true; }
  // Like Heed, and the first signal requests a stop of the token.
  std::stop_token token() {
    Heed();
    return source_.get_token();
  }
  // The number of the first signal; 0 if none came.
  int received() const { return received_.load(); }
  // 129, 130 or 143, the exit code that shells use for a signal. REQUIRES: received() != 0.
  int exit_code() const { return 128 + received_.load(); }

 private:
  std::stop_source source_;
  std::atomic<bool> heeded_{false};
  std::atomic<int> received_{0};
  std::jthread thread_;  // Waits for the signals. Must be last: it uses the other members.
};

}  // namespace dt::cli
