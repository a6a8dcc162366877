// The lines printed when a job has begun and when it has completed.
#pragma once

#include <string>

#include "common/cluster/job_result.h"

namespace dt::cli {

// Prints the address of the status page, if there is one.
void PrintPage(const std::string& url);
void PrintSummary(const JobResult& result);

}  // namespace dt::cli
