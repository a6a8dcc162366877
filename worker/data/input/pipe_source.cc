#include <cstring>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/data/input/byte_source.h"

extern char** environ;

namespace dt::worker {
namespace {

class PipeSource : public ByteSource {
 public:
  PipeSource(int fd, pid_t child, std::string command)
      : fd_(fd), child_(child), command_(std::move(command)) {}
  ~PipeSource() override {
    close(fd_);
    if (child_ <= 0) return;
    kill(-child_, SIGKILL);  // Its whole group: the shell and what it started.
    waitpid(child_, nullptr, 0);
  }

  Result<size_t> Read(std::span<char> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = read(fd_, out.data() + done, out.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return Unavailable("reading from the command `{}` failed: {}", command_,
                           std::strerror(errno));
      }
      if (got == 0) {
        DT_TRY_STATUS(Reap());
        break;
      }
      done += static_cast<size_t>(got);
      made_ += static_cast<uint64_t>(got);
    }
    return done;
  }
  uint64_t consumed() const override { return made_; }

 private:
  // The child has closed its output, so it is about to end.
  Status Reap() {
    if (child_ <= 0) return OkStatus();
    int state = 0;
    while (waitpid(child_, &state, 0) < 0 && errno == EINTR) {
    }
    child_ = 0;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return OkStatus();
    const std::string how = WIFSIGNALED(state)
                                ? fmt::format("was ended by signal {}", WTERMSIG(state))
                                : fmt::format("ended with status {}", WEXITSTATUS(state));
    return WithHint(
        Unavailable("the command `{}` {} after printing {} bytes", command_, how, made_),
        "run it by hand; data.command must end with status 0");
  }

  const int fd_;
  pid_t child_;  // 0 once it has been waited for.
  const std::string command_;
  uint64_t made_ = 0;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> OpenPipeSource(const std::string& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Unavailable("no pipe for the command `{}`: {}", command, std::strerror(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string text = command;
  char shell[] = "sh", flag[] = "-c";
  char* const arguments[] = {shell, flag, text.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return Unavailable("the command `{}` could not be started: {}", command, std::strerror(error));
  }
  return std::make_unique<PipeSource>(ends[0], child, command);
}

}  // namespace dt::worker
