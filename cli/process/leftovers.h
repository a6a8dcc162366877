// What processes of an earlier run of a job have left because they were killed.
#pragma once

#include "common/config/job_config.h"

namespace dt::cli {

// Removes the rows and logs of its servers on this machine that no living process has. REQUIRES:
// this process has the job's only scheduler, and no other process has joined.
void RemoveLeftovers(const JobConfig& job);

}  // namespace dt::cli
