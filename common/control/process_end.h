// How `launch` tells the scheduler that one of its processes has ended: one line of JSON on a pipe
// that only these two share, so that no other process can send it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace dt {

// Begins the reason of a process's end if it is a member no more and the job goes on: another may
// be started in its place.
inline constexpr std::string_view kGoneOnWithout = "the job has gone on without it";

struct ProcessEnd {
  std::string name;  // "worker 3"
  int64_t pid = 0;
  std::string how;       // "was killed by signal 9 (Killed)"
  bool returns = false;  // `launch` starts another process instead.
};

// Writes the message to the pipe. Unavailable: the scheduler has ended.
Status SendProcessEnd(int pipe, const ProcessEnd& end);

// Reads the messages in the scheduler. One thread.
class ProcessEndReader {
 public:
  // The caller keeps `pipe`, which becomes non-blocking. -1: there is no launcher.
  explicit ProcessEndReader(int pipe);
  // Returns what has arrived since the last call; does not wait. Malformed lines are ignored.
  std::vector<ProcessEnd> Take();

 private:
  int pipe_;  // -1 once the other side has closed it.
  std::string unfinished_;
};

}  // namespace dt
