// Names of threads, as top -H, gdb and profilers show them.
#pragma once

#include <pthread.h>
#include <string>
#include <string_view>

namespace dt {

// Names the calling thread; only the first 15 characters count, because Linux refuses longer names.
// Not for a process's first thread, whose name is the process's.
inline void NameThread(std::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
}

}  // namespace dt
