// Describes a job as JobStatus. Changes nothing.
#pragma once

#include "scheduler/job/job.h"
#include "scheduler/report/status.h"

namespace dt::scheduler {

// For example "15 nodes on cpu, 88 on gpu; 1 table on servers, 1 on gpu"; equal on every worker.
std::string PlacesText(const Graph& graph);

// Merges roles that are threads of one process into one entry with the role "train".
void MergeProcesses(JobStatus& status);

JobStatus StatusOf(const Job& job, TimePoint now);

}  // namespace dt::scheduler
