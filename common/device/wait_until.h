// Sleeping until a time of SystemClock().
#pragma once

#include <condition_variable>
#include <mutex>

#include "common/base/clock.h"

namespace dt {

// Returns at `end` or soon after.
inline void WaitUntil(TimePoint end) {
  const auto over = [&] { return SystemClock().Now() >= end; };
  if (over()) return;
  // Nobody else knows these, so nothing but the time ends the wait.
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, end, over);
}

}  // namespace dt
