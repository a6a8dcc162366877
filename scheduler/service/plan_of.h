// Makes the plan of a job, with its description for people, checkpoints and the plan's page.
#pragma once

#include "common/config/job_config.h"
#include "scheduler/state/job_environment.h"

namespace dt::scheduler {

// Calls MakePlan for these workers, and assumes that their processors equal this machine's. Any
// thread.
Result<MadePlan> PlanOf(const JobConfig& job, const PlanInput& input);

}  // namespace dt::scheduler
