// A job as JobStatus: what others see of it.
#pragma once

#include "scheduler/service/job_state.h"
#include "scheduler/web/status.h"

namespace dt::scheduler {

// "15 nodes on cpu, 88 on gpu; 1 table on servers, 1 on gpu": of every worker.
std::string PlacesText(const Graph& graph);
// What one process has of a table, to what the job has; not the checksum.
void AddReport(const TableReport& report, JobResult::Table& to);
// The same of a worker whose rows have been counted: all workers hold the same.
void AddReplica(const TableReport& report, JobResult::Table& to);

// Roles that are threads of one process are that process: one row, of role "train".
void MergeProcesses(JobStatus& status);

JobStatus StatusOf(JobState& job, TimePoint now);

}  // namespace dt::scheduler
