// The lines printed when a job begins, and when it has completed.
#pragma once

#include <string>
#include <vector>

#include "common/cluster/job_result.h"

namespace dt::cli {

// Prints what a job begins with that is not its own: Taken::report of the scheduler.
void PrintTaken(const std::vector<std::string>& report);
// Prints the address of the status page, if there is one.
void PrintPage(const std::string& url);
void PrintSummary(const JobResult& result);

}  // namespace dt::cli
