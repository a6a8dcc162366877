// How `launch` tells the scheduler that one of its processes has ended: a line of JSON on a pipe
// that only these two have, so that nobody else can say it.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"

namespace dt {

struct ProcessEnd {
  std::string name;  // "worker 3"
  int64_t pid = 0;
  std::string how;       // "was killed by signal 9 (Killed)"
  bool returns = false;  // Another process is started in its place.
};

// Writes it to the pipe. Unavailable: the scheduler has ended.
Status SendProcessEnd(int pipe, const ProcessEnd& end);

// The scheduler's side. One thread.
class ProcessEndReader {
 public:
  // `pipe` stays the caller's; it is made non-blocking. -1: nobody tells anything.
  explicit ProcessEndReader(int pipe);
  // What has arrived since the last call; does not wait. Lines that are none are passed over.
  std::vector<ProcessEnd> Take();

 private:
  int pipe_;  // -1 once the other side has closed it.
  std::string unfinished_;
};

}  // namespace dt
