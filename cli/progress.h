// The progress line on a terminal; one log line per interval elsewhere.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "scheduler/service/scheduler.h"

namespace dt::cli {

// Text of at most `columns` characters: what is not known, or does not fit, is left out, from the
// least important on.
std::string ProgressLine(const scheduler::Progress& progress, size_t columns);

class ProgressPrinter {
 public:
  explicit ProgressPrinter(const CommandLine& line);
  // From the scheduler's thread, a few times a second.
  void operator()(const scheduler::Progress& progress);
  // Ends the line, so that what follows starts on a fresh one.
  void Finish();

 private:
  const bool terminal_;
  TimePoint last_log_{};
  bool open_ = false;
};

}  // namespace dt::cli
