// The planner: from a job and the columns of its data to the plans that workers run: one for each
// position in a team. Pure
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

// The plan of request.position. Errors: Invalid or NotYet. A single problem reads "node "x": …"
// with its file:line; several problems take one line each.
Result<Plan> MakePlan(const PlanRequest& request);

// Also calls seen(pass, plan) after each pass, for the graph of request.position. The plan then
// holds only the graph; after `subgraphs` the subgraphs too, and after `memory_plan` the memory
// plan.
using SeenPass = std::function<void(std::string_view pass, const Plan& plan)>;
Result<Plan> MakePlan(const PlanRequest& request, const SeenPass& seen);

// The plans of all positions of a team, in order. The graph of the whole team is made once.
// request.report is about the plan of request.position.
Result<std::vector<Plan>> MakePlans(const PlanRequest& request, const SeenPass& seen);

// All pass names that `seen` may get, in order.
std::vector<std::string> PassNames();

// A sentence for each table in which two or more columns of ids share rows, because equal numbers
// are equal keys. This is usually a mistake.
std::vector<std::string> SharedRows(const Plan& plan);
// Logs these sentences as warnings.
void WarnOfSharedRows(const Plan& plan);

}  // namespace dt::scheduler
