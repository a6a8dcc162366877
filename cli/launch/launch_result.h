// The end of `launch`: it gives the scheduler's result, and prints the last log lines of the
// process whose loss ended the job.
#pragma once

#include <string>
#include <vector>

#include "cli/process/child_process.h"
#include "cli/process/child_results.h"
#include "common/base/status.h"
#include "common/cluster/job_result.h"
#include "common/storage/json_file.h"

namespace dt::cli {

inline constexpr char kSchedulerName[] = "scheduler";

// The text of the result file: the scheduler's result, or, if it is null, what is known without it.
std::string ResultText(Json scheduler, const JobResult& without, double seconds_total);

// OK, the job's own error if the scheduler reported it, or how the scheduler itself was lost.
// REQUIRES: the scheduler is the first child, and has ended.
Status SchedulerEnd(const std::vector<ChildProcess>& children, const ChildResults& results);

// Prints the last lines of the process whose loss ended the job, if there was one.
void PrintLostLog(const std::vector<ChildProcess>& children, const Json& result);

}  // namespace dt::cli
