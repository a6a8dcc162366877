// The number of files and sockets that this process may have open.
#pragma once

#include <cstdint>

namespace dt {

// Raises the soft limit (often 1024) to the hard limit. Called once at the start of the process;
// children inherit the limit.
void RaiseOpenFilesMax();
uint64_t OpenFilesMax();

}  // namespace dt
