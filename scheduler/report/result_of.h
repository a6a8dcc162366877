// Describes a job as JobResult: how far it came and how it ended.
#pragma once

#include "common/cluster/job_result.h"
#include "scheduler/job/job.h"

namespace dt::scheduler {

// The scheduler's own role is missing in the result.
JobResult ResultOf(const Job& job, TimePoint now);

}  // namespace dt::scheduler
