// How a command ends: the sentence on standard error, the result file, the exit code.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "cli/signals.h"
#include "common/base/status.h"
#include "common/cluster/job_result.h"

namespace dt::cli {

// Prints a failed status for a person: "dovetail: what (where)\n  hint".
void PrintError(const Status& status);

// Writes a text file through a temporary name in the same folder, so that a reader never sees half of it.
Status WriteWholeFile(const std::string& path, const std::string& text);
Result<std::string> ReadWholeFile(const std::string& path);

// For a command that ends before a job runs: prints, writes --result, gives the exit code.
int EndWithError(const CommandLine& line, const std::string& job, const Status& status);

// For a job that ran. `status` is OK if it completed. An interrupted job gives 130 or 143.
int EndJob(const CommandLine& line, const JobResult& result, const Status& status,
           const StopSignals& signals);

}  // namespace dt::cli
