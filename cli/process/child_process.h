// Child processes of `launch`. A child is in its own process group (so that Ctrl-C reaches only the
// parent) and gets SIGTERM when the parent dies for any reason.
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
  int code = 0;              // The exit code, if it exited.
  int signal = 0;            // Not 0: the signal that killed it.
  std::string Text() const;  // "exited with code 3", "was killed by signal 9 (Killed)"
};

struct ChildStreams {
  int input = -1;          // Descriptor of its standard input; -1: none.
  bool keeps_log = false;  // A ChildLog reads its standard error.
};

class ChildProcess {
 public:
  // Runs `program` with arguments. The calling thread must live as long as the child.
  static Result<ChildProcess> Start(std::string name, const std::string& program,
                                    const std::vector<std::string>& arguments,
                                    const ChildStreams& streams = {});
  const std::string& name() const { return name_; }  // "server 1"
  pid_t pid() const { return pid_; }
  bool running() const { return !exit_.has_value(); }
  const std::optional<ChildExit>& exit() const { return exit_; }
  // Forwards what the child has logged, and stores its exit if it has ended. Does not wait.
  void Poll();
  // The last lines that the child wrote to standard error. REQUIRES: it keeps a log.
  const std::deque<std::string>& last_lines() const { return log_->last_lines(); }
  void Signal(int signal_number) const;

 private:
  ChildProcess(std::string name, pid_t pid) : name_(std::move(name)), pid_(pid) {}
  std::string name_;
  pid_t pid_ = 0;
  std::optional<ChildExit> exit_;
  std::optional<ChildLog> log_;
};

// The path of this program when it was started, under which process lists show it.
std::string OwnProgram();
// Sends SIGTERM to all running children, waits `timeout`, then sends SIGKILL. Returns when none is
// left.
void StopAll(std::vector<ChildProcess>& children, Duration timeout);
// Polls all children every 20 ms until `done(children)` or the deadline. Returns whether done.
template <class Done>
bool WaitFor(std::vector<ChildProcess>& children, Duration timeout, Done done);

template <class Done>
bool WaitFor(std::vector<ChildProcess>& children, Duration timeout, Done done) {
  const auto is_done = [&] {
    for (ChildProcess& child : children) child.Poll();
    return done(children);
  };
  return PollUntil(SystemClock().Now() + timeout, milliseconds(20), is_done);
}

}  // namespace dt::cli
