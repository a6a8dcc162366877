// Removes what killed processes of earlier runs of a job left.
#pragma once

#include "common/config/job_config.h"

namespace dt::cli {

// Removes the rows and logs of the job's servers on this machine that no living process uses.
// REQUIRES: this process has the job's only scheduler, and no other process has joined.
void RemoveLeftovers(const JobConfig& job);

}  // namespace dt::cli
