// Runs the real program (DT_PROGRAM) as a child, with a deadline, in a temporary folder.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace dt::test {

struct ProgramEnd {
  int exit_code = -1;  // -1: did not exit by itself.
  int signal = 0;      // The signal that killed it; 0: none.
  bool timed_out = false;
  std::string output;  // Standard output and standard error together.
};

class Program {
 public:
  // Starts the program at once; its output goes to a file in `folder`, which is its working
  // directory.
  Program(const std::string& folder, const std::vector<std::string>& arguments);
  ~Program();  // Kills the program if it still runs.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal_number) const;
  // Waits for the end; after `timeout` kills the program and sets timed_out.
  ProgramEnd Wait(std::chrono::milliseconds timeout);
  // Whether it has ended by itself or by a signal; Wait says how.
  bool HasEnded() const;
  // Its output so far.
  std::string Output() const;

 private:
  std::string output_path_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

ProgramEnd RunProgram(const std::string& folder, const std::vector<std::string>& arguments,
                      std::chrono::milliseconds timeout = std::chrono::seconds(60));

// A new folder, removed with its content at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string Write(const std::string& name, const std::string& text) const;  // Returns the path.
  std::string Read(const std::string& name) const;                            // "" if absent.

 private:
  std::string path_;
};

// A job name that no other process has on its command line, not even another run of the same test.
std::string JobNameOfOurs(const std::string& name);
// Other processes whose command lines contain `text`.
std::vector<pid_t> ProcessesWith(const std::string& text);
// Those that also have the argument `role`.
std::vector<pid_t> ProcessesWith(const std::string& text, const std::string& role);

// Polls every 20 ms. Returns false if `done` did not become true in time.
bool Eventually(std::chrono::milliseconds timeout, const std::function<bool()>& done);

}  // namespace dt::test
