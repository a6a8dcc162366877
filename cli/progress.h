// The progress of a job: one updated line on a terminal, otherwise a log line per interval.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "scheduler/service/scheduler.h"

namespace dt::cli {

// A line of at most `columns` characters. Unknown values are left out, and then, if the line is too
// long, the least important ones.
std::string ProgressLine(const scheduler::Progress& progress, size_t columns);

class ProgressPrinter {
 public:
  explicit ProgressPrinter(const CommandLine& line);
  // Called on the scheduler's thread, a few times a second.
  void operator()(const scheduler::Progress& progress);
  // Ends the line, so that later output starts on a new one.
  void Finish();

 private:
  const bool terminal_;
  TimePoint last_log_{};
  bool open_ = false;
};

}  // namespace dt::cli
