// How a command ends: the message on standard error, the result file, and the exit code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "cli/process/signals.h"
#include "common/base/status.h"
#include "common/cluster/job_result.h"

namespace dt::cli {

// Prints a failed status for people: "dovetail: what (where)\n  hint". If logs are in JSON, writes
// it as a line of the log.
void PrintError(const Status& status);

// Prints to standard output. Control characters are escaped, so that no text can control the
// terminal.
void PrintText(std::string_view text);
template <class... Args>
void Print(fmt::format_string<Args...> format, Args&&... args) {
  PrintText(fmt::format(format, std::forward<Args>(args)...));
}

// "1 epoch", "2 epochs".
std::string Counted(uint64_t count, std::string_view what);

// For a command that ends before a job runs: prints the error, writes --result, returns the exit
// code.
int EndWithError(const CommandLine& line, const std::string& job, const Status& status);

// For a job that ran: prints its error if it has one, writes --result, returns the exit code. A job
// that a signal interrupted returns 129, 130 or 143.
int EndJob(const CommandLine& line, const JobResult& result, const StopSignals& signals);
// Like EndJob, with the text of the result file.
int EndJobWith(const CommandLine& line, const Status& status, const std::string& result_json,
               const StopSignals& signals);

// Returns the exit code for `main` to return. If a call to a remote file system runs that has been
// given up, the process ends here: the call may use objects that the usual end would destroy.
int EndProcess(int code);

}  // namespace dt::cli
