// The planner: from a job and the columns of its data to the plan that every worker runs. Pure
// functions over values; nothing here runs a kernel or touches a socket.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/plan/plan.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// Error: Invalid or NotYet. One problem reads "node "x": …" with its file:line; several
// are one line each.
Result<Plan> MakePlan(const PlanRequest& request);

// The same, and calls seen(pass, plan) after each pass: with the graph alone, after `subgraphs`
// with subgraphs too, after `memory_plan` with memory.
using SeenPass = std::function<void(std::string_view pass, const Plan& plan)>;
Result<Plan> MakePlan(const PlanRequest& request, const SeenPass& seen);

// All that `seen` may be called with, in their order.
std::vector<std::string> PassNames();

// A sentence for each table whose rows two or more columns of ids share because equal numbers are
// equal keys: mostly a slip, seldom a wish.
std::vector<std::string> SharedRows(const Plan& plan);
// Says them in the log.
void WarnOfSharedRows(const Plan& plan);

}  // namespace dt::scheduler
