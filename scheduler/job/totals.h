// Adds up what the processes of a job hold at its end. Values only.
#pragma once

#include <map>
#include <string>

#include "common/cluster/job_result.h"
#include "common/control/orders.h"
#include "scheduler/membership/membership.h"

namespace dt::scheduler {

// Adds one process's numbers of a table to the job's, without the checksum.
void AddReport(const TableReport& report, JobResult::Table& to);
// Adds only what is each worker's own: the rows themselves are equal on all workers, and another
// worker's have been counted.
void AddReplica(const TableReport& report, JobResult::Table& to);

struct Totals {
  std::map<std::string, JobResult::Table> tables;
  std::string dense_checksum;
  std::map<ProcessId, ProcessStats> stats;
};
// Internal: two workers hold different rows, or different dense parameters.
Result<Totals> TotalsOf(const std::map<ProcessId, FinishDone>& reports, const Membership& members);

}  // namespace dt::scheduler
