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

}  // namespace dt
