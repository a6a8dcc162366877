#include "cli/process/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace dt::cli {
namespace {

sigset_t StopSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  // Blocked in this thread and so in all that it starts; only `thread_` takes them.
  const sigset_t set = StopSet();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  thread_ = std::jthread([this](std::stop_token end) {
    const sigset_t waited = StopSet();
    const timespec patience{.tv_sec = 0, .tv_nsec = 100'000'000};
    while (!end.stop_requested()) {
      const int signal_number = sigtimedwait(&waited, nullptr, &patience);
      if (signal_number <= 0) continue;
      if (received_.load() != 0 || !heeded_.load()) _exit(128 + signal_number);
      received_ = signal_number;
      source_.request_stop();
    }
  });
}

StopSignals::~StopSignals() = default;

}  // namespace dt::cli
