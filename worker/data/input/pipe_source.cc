#include <cstring>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/storage/files.h"
#include "worker/data/input/byte_source.h"

extern char** environ;

namespace dt::worker {
namespace {

// Starts `command` with the shell, in process group `group` (0: a new one). It inherits the given
// input and output, our standard error and no other open file; its signal handling is the default.
Result<pid_t> StartShell(std::string command, pid_t group, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t blocked, ignored;
  sigemptyset(&blocked);
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGPIPE);
  sigaddset(&ignored, SIGXFSZ);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, group);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setsigdefault(&attributes, &ignored);
  char shell[] = "sh", flag[] = "-c";
  char* const arguments[] = {shell, flag, command.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return Unavailable("the shell could not be started: {}", std::strerror(error));
  return child;
}

// The processes of a command, in a group led by a guard process. The guard reads from a pipe whose
// other end only this process holds: when this process ends, in whatever way, the guard kills the
// group.
class Group {
 public:
  static Result<std::unique_ptr<Group>> Start(int null) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return Unavailable("no pipe: {}", std::strerror(errno));
    OpenFile held(ends[0]), ours(ends[1]);
    DT_TRY(const pid_t guard,
           StartShell("read -r end; kill -s KILL 0", 0, held.descriptor(), null));
    return std::make_unique<Group>(guard, std::move(ours));
  }
  Group(pid_t guard, OpenFile leash) : guard_(guard), leash_(std::move(leash)) {}
  ~Group() {
    kill(-guard_, SIGKILL);
    waitpid(guard_, nullptr, 0);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  pid_t id() const { return guard_; }

 private:
  const pid_t guard_;
  const OpenFile leash_;
};

class PipeSource : public ByteSource {
 public:
  PipeSource(OpenFile output, std::unique_ptr<Group> group, pid_t child, std::string command)
      : output_(std::move(output)),
        group_(std::move(group)),
        child_(child),
        command_(std::move(command)) {}
  ~PipeSource() override {
    group_ = nullptr;
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }

  Result<size_t> Read(std::span<char> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = read(output_.descriptor(), out.data() + done, out.size() - done);
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

  const OpenFile output_;
  std::unique_ptr<Group> group_;
  pid_t child_;  // 0 once it has been waited for.
  const std::string command_;
  uint64_t made_ = 0;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> OpenPipeSource(const std::string& command) {
  const auto failed = [&command](const Status& why) {
    return Unavailable("the command `{}` could not be started: {}", command, MessageOf(why));
  };
  const OpenFile null(open("/dev/null", O_RDWR | O_CLOEXEC));
  int ends[2];
  if (!null.ok() || pipe2(ends, O_CLOEXEC) != 0)
    return failed(DiskError("opening", "a pipe", errno));
  OpenFile output(ends[0]), input(ends[1]);
  Result<std::unique_ptr<Group>> group = Group::Start(null.descriptor());
  if (!group.ok()) return failed(group.status());
  const Result<pid_t> child =
      StartShell(command, (*group)->id(), null.descriptor(), input.descriptor());
  if (!child.ok()) return failed(child.status());
  return std::make_unique<PipeSource>(std::move(output), *std::move(group), *child, command);
}

}  // namespace dt::worker
