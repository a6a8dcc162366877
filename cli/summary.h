// The lines printed when a job has completed.
#pragma once

#include "common/cluster/job_result.h"

namespace dt::cli {

void PrintSummary(const JobResult& result);

}  // namespace dt::cli
