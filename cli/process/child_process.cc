#include "cli/process/child_process.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dt::cli {
namespace {

// Runs in the child, between fork and exec, so it makes only async-signal-safe calls.
[[noreturn]] void BecomeChild(pid_t parent, int input, int errors, char* const* arguments) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // The parent died before prctl.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (input < 0) input = open("/dev/null", O_RDONLY);
  if (input >= 0) dup2(input, STDIN_FILENO);
  if (errors >= 0) dup2(errors, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0u, 0);  // A library may have left files open.
  execv(arguments[0], arguments);
  _exit(127);
}

}  // namespace

std::string ChildExit::Text() const {
  if (signal != 0) return fmt::format("was killed by signal {} ({})", signal, strsignal(signal));
  return fmt::format("exited with code {}", code);
}

Result<ChildProcess> ChildProcess::Start(std::string name, const std::string& program,
                                         const std::vector<std::string>& arguments,
                                         const ChildStreams& streams) {
  std::vector<char*> argv;
  argv.push_back(const_cast<char*>(program.c_str()));
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  int errors[2] = {-1, -1};
  if (streams.keeps_log && pipe2(errors, O_CLOEXEC) != 0) {
    return Unavailable("cannot start {}: {}", name, std::strerror(errno));
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) BecomeChild(parent, streams.input, errors[1], argv.data());
  const int why = errno;
  if (streams.keeps_log) close(errors[1]);
  if (pid < 0) {
    if (streams.keeps_log) close(errors[0]);
    return Unavailable("cannot start {}: {}", name, std::strerror(why));
  }
  ChildProcess child(std::move(name), pid);
  if (streams.keeps_log) child.log_.emplace(child.name_, errors[0]);
  return child;
}

std::string OwnProgram() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  // If the file has been replaced by another build, the link still leads to the running program.
  return error || !std::filesystem::exists(path, error) ? "/proc/self/exe" : path.string();
}

void ChildProcess::Poll() {
  if (exit_.has_value()) return;
  int status = 0;
  const bool ended = waitpid(pid_, &status, WNOHANG) == pid_;
  if (log_.has_value()) log_->PassOn();
  if (!ended) return;
  exit_ = WIFSIGNALED(status) ? ChildExit{.signal = WTERMSIG(status)}
                              : ChildExit{.code = WEXITSTATUS(status)};
}

void ChildProcess::Signal(int signal_number) const {
  if (running()) kill(pid_, signal_number);
}

void StopAll(std::vector<ChildProcess>& children, Duration timeout) {
  const auto none_running = [](const std::vector<ChildProcess>& all) {
    for (const ChildProcess& child : all) {
      if (child.running()) return false;
    }
    return true;
  };
  for (ChildProcess& child : children) child.Signal(SIGTERM);
  if (WaitFor(children, timeout, none_running)) return;
  for (ChildProcess& child : children) child.Signal(SIGKILL);
  WaitFor(children, seconds(10), none_running);
}

}  // namespace dt::cli
