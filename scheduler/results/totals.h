// Adds up the final reports of a job's processes. Pure functions.
#pragma once

#include <map>
#include <string>

#include "common/cluster/job_result.h"
#include "common/control/orders.h"
#include "scheduler/membership/membership.h"

namespace dt::scheduler {

// Adds one process's numbers for a table to the job's, except the checksum.
void AddReport(const TableReport& report, JobResult::Table& to);
// Adds only the numbers that differ between workers: the rows are equal on all workers, and were
// counted with the first one.
void AddReplica(const TableReport& report, JobResult::Table& to);

struct Totals {
  std::map<std::string, JobResult::Table> tables;
  std::string dense_checksum;
  std::map<ProcessId, ProcessStats> stats;
  DT_FIELDS(tables, dense_checksum, stats)
};
// Errors: Internal, if two workers hold different rows or different dense parameters, or two
// servers different copies of a shard.
Result<Totals> TotalsOf(const std::map<ProcessId, FinishDone>& reports, const Membership& members,
                        const JobConfig& job);

}  // namespace dt::scheduler
