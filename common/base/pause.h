// The only functions in which a thread sleeps for a time. All other code waits, with a deadline,
// for the event that it needs. Sleeping is for things that send no event when they change: a lock,
// a file or a port of another process, a counter of a device, a full disk.
#pragma once

#include <stop_token>

#include "common/base/clock.h"

namespace dt {

// Returns at `end`, a time of SystemClock(), or shortly after.
void PauseUntil(TimePoint end);
void Pause(Duration time);
// Returns false as soon as a stop is requested, and true after the time.
bool Pause(Duration time, const std::stop_token& stop);

// Checks `condition` at once and then every `interval`, until it is true or `deadline` is past.
// Returns whether it became true. It is checked at least once, even after the deadline.
template <class Condition>
bool PollUntil(TimePoint deadline, Duration interval, const Condition& condition) {
  while (!condition()) {
    if (SystemClock().Now() >= deadline) return false;
    Pause(interval);
  }
  return true;
}

}  // namespace dt
