// How a process ends when the system gives it no more memory or no more threads: with one sentence
// and exit code 1. There is no error to handle, because handling it would also take memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/status.h"

namespace dt {

// Ends with "out of memory for 4096 bytes of rows". Any thread.
[[noreturn]] void EndOutOfMemory(uint64_t bytes, std::string_view of_what);
// From this call on, an uncaught std::bad_alloc, or the exception of a thread that cannot start,
// ends the process this way. Other uncaught exceptions still abort.
void InstallMemoryEnd();
// Unavailable if the process may have too few addresses for any job (ulimit -v). Below this limit
// libraries that generate code crash instead of reporting that they could not allocate memory.
Status CheckAddresses();

}  // namespace dt
