// The plan of a job, with what is told of it to people, checkpoints and the plan's page.
#pragma once

#include "common/config/job_config.h"
#include "scheduler/job/job_environment.h"

namespace dt::scheduler {

// MakePlan of scheduler/plan for these workers, as if their processors were this machine's. Any
// thread.
Result<MadePlan> PlanOf(const JobConfig& job, const PlanInput& input);

}  // namespace dt::scheduler
