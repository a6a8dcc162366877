// Writes to a connection whose other end is gone.
#pragma once

#include <csignal>

namespace dt {

// If SIGPIPE would end the process, the process ignores it from then on, and such a write only
// fails. Call it before a library writes to sockets that does not suppress the signal itself. Any
// thread.
inline void IgnoreBrokenPipes() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
    std::signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace dt
