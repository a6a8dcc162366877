// A job as JobStatus: what others see of it.
#pragma once

#include "scheduler/service/job_state.h"
#include "scheduler/web/status.h"

namespace dt::scheduler {

JobStatus StatusOf(JobState& job, const std::string& name, TimePoint now);

}  // namespace dt::scheduler
