// Forwards the standard error of a child process, which is a pipe to this process, line by line to
// this process's own, and keeps the last lines. One thread.
#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace dt::cli {

class ChildLog {
 public:
  // Takes ownership of `pipe`, the reading end.
  ChildLog(std::string name, int pipe);
  ~ChildLog();
  ChildLog(ChildLog&& other) noexcept;
  ChildLog& operator=(ChildLog&& other) noexcept;

  // Forwards what has arrived; does not wait. If this process logs JSON, a line that is not JSON
  // (from a library, or a crash) becomes the text of an event.
  void PassOn();
  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  void PassOnLine(std::string_view line);

  std::string name_;
  int pipe_ = -1;  // -1 once the child has closed its end.
  std::string unfinished_;
  std::deque<std::string> last_lines_;
};

}  // namespace dt::cli
