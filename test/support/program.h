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
  int signal = 0;      // Killed by.
  bool timed_out = false;
  std::string output;  // Standard output and error together.
};

class Program {
 public:
  // Starts at once; output goes to a file in `folder`, which is the working directory.
  Program(const std::string& folder, const std::vector<std::string>& arguments);
  ~Program();  // Kills what still runs.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal_number) const;
  // Waits; kills and says timed_out after `timeout`.
  ProgramEnd Wait(std::chrono::milliseconds timeout);
  // What it printed so far.
  std::string Output() const;

 private:
  std::string output_path_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

ProgramEnd RunProgram(const std::string& folder, const std::vector<std::string>& arguments,
                      std::chrono::milliseconds timeout = std::chrono::seconds(60));

// A fresh folder, removed with all that is in it at the end.
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

// The name of a job that no other process has on its command line: not even those of this same
// test, when it runs twice at once.
std::string JobNameOfOurs(const std::string& name);
// Processes whose command line has `text` in it, other than this one.
std::vector<pid_t> ProcessesWith(const std::string& text);

// Polls every 20 ms. False if `done` never held.
bool Eventually(std::chrono::milliseconds timeout, const std::function<bool()>& done);

}  // namespace dt::test
