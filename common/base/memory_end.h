// How a process ends that gets no more memory, or no more threads, from the system: with one
// sentence and exit code 1. Nobody could handle it, since handling takes memory, too.
#pragma once

#include <cstdint>
#include <string_view>

namespace dt {

// "out of memory for 4096 bytes of rows". Any thread.
[[noreturn]] void EndOutOfMemory(uint64_t bytes, std::string_view of_what);
// From now on the heap's exceptions and those of threads that cannot start end the process so.
// Others that nobody catches abort, as before.
void InstallMemoryEnd();

}  // namespace dt
