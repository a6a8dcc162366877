// Child processes of `launch`. A child is in a process group of its own (Ctrl-C reaches only the
// parent) and gets SIGTERM when the parent dies, however it dies.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "cli/process/child_log.h"
#include "common/base/clock.h"
#include "common/base/pause.h"
#include "common/base/status.h"

namespace dt::cli {

struct ChildExit {
  int code = 0;              // Exit code, if it exited.
  int signal = 0;            // Not 0: killed by this signal.
  std::string Text() const;  // "exited with code 3", "was killed by signal 9 (Killed)"
};

struct ChildStreams {
  int input = -1;          // Its standard input; -1: there is none.
  bool keeps_log = false;  // Its standard error goes through a ChildLog.
};

class ChildProcess {
 public:
  // Runs program with arguments. The calling thread must live as long as the child.
  static Result<ChildProcess> Start(std::string name, const std::string& program,
                                    const std::vector<std::string>& arguments,
                                    const ChildStreams& streams = {});
  const std::string& name() const { return name_; }  // "server 1"
  pid_t pid() const { return pid_; }
  bool running() const { return !exit_.has_value(); }
  const std::optional<ChildExit>& exit() const { return exit_; }
  // Collects what it has logged, and the exit if there is one. Does not wait.
  void Poll();
  // The last lines that it wrote to standard error. REQUIRES: it keeps a log.
  const std::deque<std::string>& last_lines() const { return log_->last_lines(); }
  void Signal(int signal_number) const;

 private:
  ChildProcess(std::string name, pid_t pid) : name_(std::move(name)), pid_(pid) {}
  std::string name_;
  pid_t pid_ = 0;
  std::optional<ChildExit> exit_;
  std::optional<ChildLog> log_;
};

// The path of this program, as it was when it started: what processes are listed as.
std::string OwnProgram();
// SIGTERM to all that run, `timeout` for them to end, then SIGKILL. Returns when none is left.
void StopAll(std::vector<ChildProcess>& children, Duration timeout);
// Polls all every 20 ms until `done(children)` or the deadline. True if done.
template <class Done>
bool WaitFor(std::vector<ChildProcess>& children, Duration timeout, Done done);

template <class Done>
bool WaitFor(std::vector<ChildProcess>& children, Duration timeout, Done done) {
  const TimePoint deadline = SystemClock().Now() + timeout;
  while (true) {
    for (ChildProcess& child : children) child.Poll();
    if (done(children)) return true;
    if (SystemClock().Now() >= deadline) return false;
    Pause(milliseconds(20));
  }
}

}  // namespace dt::cli
