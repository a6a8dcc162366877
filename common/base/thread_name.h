// Names of threads, as top -H, gdb and profilers show them.
#pragma once

namespace dt {

// Names the calling thread; only the first 15 characters count. Not for a process's first thread,
// whose name is the process's.
void NameThread(const char* name);

}  // namespace dt
