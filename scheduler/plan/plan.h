// The planner: from a job and the columns of its data to the plans that workers run: one for each
// position in a team. Pure functions over values; nothing here runs a kernel or touches a socket.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/plan/plan.h"
#include "scheduler/passes/parallel/parallel_graph.h"
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

// The plans of all positions of a team. Positions with equal shapes share one, apart from their
// groups and from where their parts begin.
class TeamPlans {
 public:
  // `parallel` is not read for a team of one.
  TeamPlans(ParallelGraph parallel, std::vector<Plan> plans, std::vector<uint32_t> plan_of)
      : parallel_(std::move(parallel)), plans_(std::move(plans)), plan_of_(std::move(plan_of)) {}

  uint32_t positions() const { return static_cast<uint32_t>(plan_of_.size()); }
  size_t different() const { return plans_.size(); }
  Plan At(uint32_t position) const;
  std::vector<Plan> All() const;
  // Errors: those of CheckTeam.
  Status Check() const;

 private:
  ParallelGraph parallel_;
  std::vector<Plan> plans_;
  std::vector<uint32_t> plan_of_;  // By position.
};
// The graph of the whole team is made once. request.report is about the plan of request.position.
Result<TeamPlans> MakePlans(const PlanRequest& request, const SeenPass& seen);

// All pass names that `seen` may get, in order.
std::vector<std::string> PassNames();

// A sentence for each table in which two or more columns of ids share rows, because equal numbers
// are equal keys. This is usually a mistake.
std::vector<std::string> SharedRows(const Plan& plan);
// Logs these sentences as warnings.
void WarnOfSharedRows(const Plan& plan);

}  // namespace dt::scheduler
