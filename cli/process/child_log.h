// Passes on what a child process writes to standard error, which is a pipe to this process, to this
// one's own by whole lines, and keeps the last of them. One thread.
#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace dt::cli {

class ChildLog {
 public:
  // `pipe` is the end to read, and becomes this object's.
  ChildLog(std::string name, int pipe);
  ~ChildLog();
  ChildLog(ChildLog&& other) noexcept;
  ChildLog& operator=(ChildLog&& other) noexcept;

  // Passes on what has arrived. Does not wait. Where this process logs JSON, a line that is none
  // (of a library, or of an end without warning) becomes the text of an event.
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
