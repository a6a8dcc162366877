// A job as JobResult: how far it came and how it ended.
#pragma once

#include "common/cluster/job_result.h"
#include "scheduler/job/job.h"

namespace dt::scheduler {

// Without the scheduler's own part.
JobResult ResultOf(const Job& job, TimePoint now);

}  // namespace dt::scheduler
