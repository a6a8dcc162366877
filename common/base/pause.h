// The one place where a thread lets time pass. Everything else waits for what it needs, with a
// deadline; these are for things that tell nobody when they change: a lock, a file or a port of
// another process, a counter of a device, a disk that is full.
#pragma once

#include <stop_token>

#include "common/base/clock.h"

namespace dt {

// Returns at `end`, a time of SystemClock(), or soon after.
void PauseUntil(TimePoint end);
void Pause(Duration time);
// False, as soon as a stop is requested; true after the time.
bool Pause(Duration time, const std::stop_token& stop);

}  // namespace dt
