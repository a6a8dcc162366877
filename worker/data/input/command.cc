#include "worker/data/input/command.h"

#include <cstring>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace

// The processes of a command, in a group led by a guard process. The guard reads from a pipe whose
// other end only this process holds: when this process ends, in whatever way, the guard kills the
// group.
class Command::Group {
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

Command::Command(std::string text, OpenFile output, std::unique_ptr<Group> group, pid_t child)
    : text_(std::move(text)), output_(std::move(output)), group_(std::move(group)), child_(child) {}

Command::~Command() {
  group_ = nullptr;
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

Result<std::unique_ptr<Command>> Command::Start(const std::string& text) {
  const auto failed = [&text](const Status& why) {
    return Unavailable("the command `{}` could not be started: {}", text, MessageOf(why));
  };
  const OpenFile null(open("/dev/null", O_RDWR | O_CLOEXEC));
  int ends[2];
  if (!null.ok() || pipe2(ends, O_CLOEXEC) != 0)
    return failed(DiskError("opening", "a pipe", errno));
  OpenFile output(ends[0]), input(ends[1]);
  Result<std::unique_ptr<Group>> group = Group::Start(null.descriptor());
  if (!group.ok()) return failed(group.status());
  const Result<pid_t> child =
      StartShell(text, (*group)->id(), null.descriptor(), input.descriptor());
  if (!child.ok()) return failed(child.status());
  return std::make_unique<Command>(text, std::move(output), *std::move(group), *child);
}

Status Command::Reap(uint64_t made) {
  if (child_ <= 0) return OkStatus();
  int state = 0;
  while (waitpid(child_, &state, 0) < 0 && errno == EINTR) {
  }
  child_ = 0;
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return OkStatus();
  const std::string how = WIFSIGNALED(state)
                              ? fmt::format("was ended by signal {}", WTERMSIG(state))
                              : fmt::format("ended with status {}", WEXITSTATUS(state));
  return WithHint(Unavailable("the command `{}` {} after printing {} bytes", text_, how, made),
                  "run it by hand; data.command must end with status 0");
}

}  // namespace dt::worker
