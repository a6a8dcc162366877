#include "common/base/pause.h"

#include <condition_variable>
#include <mutex>

namespace dt {

// The mutex and the condition are local, so only time ends the wait.
void PauseUntil(TimePoint end) {
  const auto over = [end] { return SystemClock().Now() >= end; };
  if (over()) return;
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, end, over);
}

void Pause(Duration time) { PauseUntil(SystemClock().Now() + time); }

bool Pause(Duration time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace dt
