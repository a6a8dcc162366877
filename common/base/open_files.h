// How many files and sockets this process may have open.
#pragma once

#include <cstdint>

namespace dt {

// To what the host allows at most: many begin with 1024 of it. Once, at the start of a process;
// children have it too.
void RaiseOpenFilesMax();
uint64_t OpenFilesMax();

}  // namespace dt
