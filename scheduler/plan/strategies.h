// Finds out how the job says that nodes are cut.
#pragma once

#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/graph/graph.h"
#include "scheduler/passes/parallel/parallel_graph.h"

namespace dt::scheduler {

// Fills in the strategies of the team: those of nodes in the job file, which for a composite are
// those of its products, and for operators without one the first rule of parallel.cut that matches
// their name. Errors: Invalid, one line for each strategy that is of no operator, or that a team of
// one worker cannot follow.
Status FindStrategies(const Graph& graph, const JobConfig& job, TeamOptions& team);

}  // namespace dt::scheduler
