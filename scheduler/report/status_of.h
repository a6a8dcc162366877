// A job as JobStatus: what others see of it. Looking changes nothing.
#pragma once

#include "scheduler/job/job.h"
#include "scheduler/report/status.h"

namespace dt::scheduler {

// "15 nodes on cpu, 88 on gpu; 1 table on servers, 1 on gpu": on every worker.
std::string PlacesText(const Graph& graph);

// Roles that are threads of one process are that process: one row, of role "train".
void MergeProcesses(JobStatus& status);

JobStatus StatusOf(const Job& job, TimePoint now);

}  // namespace dt::scheduler
