#include "test/support/program.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/pause.h"

namespace dt::test {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

[[noreturn]] void Become(const char* folder, const char* output, char* const* argv) {
  setpgid(0, 0);
  const int file = open(output, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  const int null_input = open("/dev/null", O_RDONLY);
  if (file < 0 || null_input < 0 || chdir(folder) != 0) _exit(126);
  dup2(null_input, STDIN_FILENO);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  execv(argv[0], argv);
  _exit(127);
}

}  // namespace

Program::Program(const std::string& folder, const std::vector<std::string>& arguments) {
  static int number = 0;
  output_path_ = folder + "/output-" + std::to_string(number++) + ".txt";
  const char* program = std::getenv("DT_PROGRAM");
  DT_CHECK_MSG(program != nullptr, "DT_PROGRAM names no program; run this test through ctest");
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  DT_CHECK(pid_ >= 0);
  if (pid_ == 0) Become(folder.c_str(), output_path_.c_str(), argv.data());
}

Program::~Program() {
  if (ended_) return;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Program::Signal(int signal_number) const { kill(pid_, signal_number); }

bool Program::HasEnded() const {
  siginfo_t info{};
  return ended_ ||
         (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
          info.si_pid == pid_);
}

ProgramEnd Program::Wait(std::chrono::milliseconds timeout) {
  ProgramEnd end;
  int status = 0;
  const auto exited = [&] { return waitpid(pid_, &status, WNOHANG) == pid_; };
  if (Eventually(timeout, exited)) {
    if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  } else {
    end.timed_out = true;
    kill(-pid_, SIGKILL);
    waitpid(pid_, &status, 0);
  }
  ended_ = true;
  end.output = Output();
  return end;
}

std::string Program::Output() const { return ReadAll(output_path_); }

ProgramEnd RunProgram(const std::string& folder, const std::vector<std::string>& arguments,
                      std::chrono::milliseconds timeout) {
  return Program(folder, arguments).Wait(timeout);
}

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "dovetail-XXXXXX").string();
  DT_CHECK(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::Write(const std::string& name, const std::string& text) const {
  std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string TempFolder::Read(const std::string& name) const { return ReadAll(path_ + "/" + name); }

std::string JobNameOfOurs(const std::string& name) {
  return "p" + std::to_string(getpid()) + "-" + name;
}

std::vector<pid_t> ProcessesWith(const std::string& text, const std::string& role) {
  std::vector<pid_t> found = ProcessesWith(text);
  const std::string argument = std::string("\0", 1) + role + std::string("\0", 1);
  std::erase_if(found, [&](pid_t pid) {
    return ReadAll(fmt::format("/proc/{}/cmdline", pid)).find(argument) == std::string::npos;
  });
  return found;
}

std::vector<pid_t> ProcessesWith(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (pid == getpid()) continue;
    if (ReadAll(entry.path().string() + "/cmdline").find(text) != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

bool Eventually(std::chrono::milliseconds timeout, const std::function<bool()>& done) {
  return PollUntil(SystemClock().Now() + timeout, milliseconds(20), done);
}

}  // namespace dt::test
