// How many files and sockets this process may have open.
#pragma once

#include <cstdint>

namespace dt {

// Raises the soft limit, often 1024, to the hard limit. Call once at the start of the process;
// children inherit it.
void RaiseOpenFilesMax();
uint64_t OpenFilesMax();

}  // namespace dt
