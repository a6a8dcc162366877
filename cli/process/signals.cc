#include "cli/process/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/thread_name.h"

namespace dt::cli {
namespace {

// Signals within this time of the first are the same request: the kernel reports a parent's death
// once for each of its threads, and a terminal and a wrapper program may both forward Ctrl-C.
constexpr Duration kSameRequest = milliseconds(500);

sigset_t StopSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  // SIGHUP means that the terminal is gone; under `nohup` it is ignored and stays ignored.
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  // Blocks the signals in this thread and in all threads that it starts; only `thread_` receives
  // them.
  const sigset_t set = StopSet();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // Above the file size limit, write() then fails instead.
  thread_ = std::jthread([this, set](std::stop_token end) {
    NameThread("signals");
    const timespec timeout{.tv_sec = 0, .tv_nsec = 100'000'000};
    TimePoint first;
    while (!end.stop_requested()) {
      const int signal_number = sigtimedwait(&set, nullptr, &timeout);
      if (signal_number <= 0) continue;
      const TimePoint now = SystemClock().Now();
      const bool again = received_.load() != 0;
      if (again && now - first < kSameRequest) continue;
      if (again || !heeded_.load()) _exit(128 + signal_number);
      first = now;
      received_ = signal_number;
      source_.request_stop();
    }
  });
}

StopSignals::~StopSignals() = default;

}  // namespace dt::cli
