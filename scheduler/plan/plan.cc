#include "scheduler/plan/plan.h"

#include <set>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/plan/check_plan.h"
#include "common/plan/check_team.h"
#include "ops/op_spec.h"
#include "ops/sharding.h"
#include "scheduler/passes/lowering/lowering.h"
#include "scheduler/plan/pass_list.h"
#include "scheduler/plan/step_time.h"
#include "scheduler/plan/strategies.h"
#include "scheduler/plan/table_locations.h"

namespace dt::scheduler {
namespace {

// These passes run after those of the list, and work on the plan.
constexpr std::string_view kSubgraphsPass = "subgraphs", kMemoryPass = "memory_plan";
// These passes concern teams of several workers only.
constexpr std::string_view kByPartsPass = "by_parts", kParallelizePass = "parallelize";

Status CheckRequest(const PlanRequest& request) {
  if (request.slices == 0 || request.job.train.batch_size == 0) {
    return Invalid("train: batch_size and slices must be 1 or more");
  }
  std::set<std::string_view> names;
  uint32_t weights = 0;
  for (const ColumnSpec& column : request.columns) {
    if (!names.insert(column.name).second)
      return Invalid("two columns are named \"{}\"", column.name);
    if (column.role != ColumnRole::kWeight) continue;
    if (column.is_keys())
      return Invalid("column \"{}\" is a weight and must be a float", column.name);
    if (++weights > 1) return Invalid("column \"{}\" is a second sample weight", column.name);
  }
  return OkStatus();
}

class Planner {
 public:
  Planner(const PlanRequest& asked, const SeenPass& seen)
      : request_(asked), asked_(asked), seen_(seen) {}

  // The passes over the graph of the whole team.
  Status PlanTeam() {
    DT_TRY_STATUS(CheckRequest(request_));
    tables_ = ChooseTableLocations(request_);
    request_.on_worker = tables_.on_worker;
    team_.devices = request_.devices();
    team_.samples = (request_.job.train.batch_size + request_.slices - 1) / request_.slices;
    team_.all_to_all = request_.job.parallel.all_to_all;
    const std::span<const GraphPass> passes = GraphPasses();
    for (; next_ < passes.size(); ++next_) {
      DT_TRY_STATUS(Run(passes[next_], graph_));
      if (passes[next_].name == kInferPass) DT_TRY_STATUS(WriteByParts());
      if (passes[next_].name == kDifferentiatePass) break;
    }
    ++next_;
    for (const Node& node : graph_.nodes) DT_TRY_STATUS(ShardingOf(graph_, node).status());
    if (team_.devices == 1) return OkStatus();
    DT_TRY(parallel_, Parallelized(graph_, team_));
    return CheckForWorkers(parallel_);
  }

  // By position: a number that is equal for positions that can share a plan.
  std::vector<uint32_t> Classes() const {
    if (team_.devices == 1) return {0};
    return ShapeClasses(parallel_);
  }
  ParallelGraph TakeParallel() { return std::move(parallel_); }

  // The other passes, over the graph of a position.
  Result<Plan> PlanPosition(uint32_t position) {
    request_.position = position;
    request_.report = position == asked_.position ? asked_.report : nullptr;
    Plan plan = Unscheduled(GraphOf(position), request_);
    Show(kParallelizePass, plan.graph);
    for (const GraphPass& pass : GraphPasses().subspan(next_)) {
      DT_TRY_STATUS(Run(pass, plan.graph));
    }
    for (const PartSpec& part : plan.graph.parts) {
      if (plan.graph.value(part.of).device == Device::kCpu) continue;
      return WithHint(NotYet("parallel.optimizer.shard with \"{}\" on an accelerator",
                             plan.graph.value(part.of).name),
                      "set optimizer.device: cpu");
    }
    CutIntoSubgraphs(plan);
    const bool shown = position == asked_.position;
    if (shown) seen_(kSubgraphsPass, plan);
    PlanMemory(plan);
    DT_TRY_STATUS(CheckPlan(plan, TraitsOf));
    if (shown) seen_(kMemoryPass, plan);
    return plan;
  }

 private:
  Status Run(const GraphPass& pass, Graph& graph) {
    DT_TRY(graph, pass.run(std::move(graph), request_));
    DT_TRY_STATUS(Prefixed(CheckGraph(graph), pass.name));
    if (pass.name == kPlacePass && request_.report != nullptr) {
      request_.report->step = TimeOfStep(graph, request_);
      request_.report->machine = request_.machine;
      request_.report->table_why = tables_.why;
    }
    Show(pass.name, graph);
    return OkStatus();
  }
  void Show(std::string_view pass, const Graph& graph) const {
    if (request_.position == asked_.position) seen_(pass, Unscheduled(graph, request_));
  }

  Status WriteByParts() {
    DT_TRY_STATUS(FindStrategies(graph_, request_.job, team_));
    DT_TRY(graph_, ByParts(graph_, team_));
    Show(kByPartsPass, graph_);
    return OkStatus();
  }

  Graph GraphOf(uint32_t position) {
    if (team_.devices == 1) return graph_;
    request_.held = parallel_.held;
    return PositionGraph(parallel_, position);
  }

  PlanRequest request_;
  const PlanRequest& asked_;
  const SeenPass& seen_;
  TableLocations tables_;
  TeamOptions team_;
  Graph graph_;             // The graph of the whole team.
  size_t next_ = 0;         // The first pass over the graph of a position.
  ParallelGraph parallel_;  // For several devices.
};

}  // namespace

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const GraphPass& pass : GraphPasses()) {
    names.emplace_back(pass.name);
    if (pass.name == kInferPass) names.emplace_back(kByPartsPass);
    if (pass.name == kDifferentiatePass) names.emplace_back(kParallelizePass);
  }
  for (const std::string_view pass : {kSubgraphsPass, kMemoryPass}) names.emplace_back(pass);
  return names;
}

Result<Plan> MakePlan(const PlanRequest& request) {
  return MakePlan(request, [](std::string_view, const Plan&) {});
}

Result<Plan> MakePlan(const PlanRequest& request, const SeenPass& seen) {
  Planner planner(request, seen);
  DT_TRY_STATUS(planner.PlanTeam());
  return planner.PlanPosition(request.position);
}

Plan TeamPlans::At(uint32_t position) const {
  Plan plan = plans_[plan_of_[position]];
  if (positions() == 1 || plan.position == position) return plan;
  plan.position = position;
  MoveTo(parallel_, position, plan.graph);
  return plan;
}

std::vector<Plan> TeamPlans::All() const {
  std::vector<Plan> all;
  for (uint32_t p = 0; p < positions(); ++p) all.push_back(At(p));
  return all;
}

Status TeamPlans::Check() const {
  std::vector<TeamMember> members;
  for (uint32_t p = 0; p < positions(); ++p) {
    members.push_back({&plans_[plan_of_[p]], {}});
    std::vector<GroupSpec>& groups = members.back().groups;
    for (const DeviceGroups& of : parallel_.groups) groups.push_back({MembersOf(of, p)});
    if (positions() == 1) groups = plans_.front().graph.groups;
  }
  return CheckTeam(members, TraitsOf);
}

Result<TeamPlans> MakePlans(const PlanRequest& request, const SeenPass& seen) {
  Planner planner(request, seen);
  DT_TRY_STATUS(planner.PlanTeam());
  std::vector<uint32_t> plan_of = planner.Classes();
  const uint32_t shown = plan_of[request.position];
  std::vector<Plan> plans;
  for (uint32_t p = 0; p < plan_of.size(); ++p) {
    if (plan_of[p] != plans.size()) continue;
    DT_TRY(plans.emplace_back(), planner.PlanPosition(plan_of[p] == shown ? request.position : p));
  }
  TeamPlans team(planner.TakeParallel(), std::move(plans), std::move(plan_of));
  DT_TRY_STATUS(team.Check());
  return team;
}

std::vector<std::string> SharedRows(const Plan& plan) {
  std::vector<std::set<uint32_t>> columns(plan.graph.tables.size());
  for (const LookupSpec& lookup : plan.graph.lookups) {
    for (const uint32_t c : lookup.columns) {
      const ColumnSpec& column = plan.columns[c];
      const bool plain = column.type == ColumnType::kId && !column.is_binned() &&
                         (column.transform.empty() || column.is_time_part());
      if (plain) columns[lookup.table].insert(c);
    }
  }
  std::vector<std::string> sentences;
  for (size_t t = 0; t < columns.size(); ++t) {
    if (columns[t].size() < 2) continue;
    std::vector<std::string> names;
    for (const uint32_t c : columns[t]) names.push_back(plan.columns[c].name);
    sentences.push_back(fmt::format(
        "columns {0} look up table {1} by their numbers, so that {2} 5 and {3} 5 are one row of it",
        JoinText(names, ", "), plan.graph.tables[t].name, names[0], names[1]));
  }
  return sentences;
}

void WarnOfSharedRows(const Plan& plan) {
  for (const std::string& shared : SharedRows(plan)) {
    LogWarn("plan.rows_shared",
            {{"why", shared},
             {"hint",
              "unless that is meant, give each column a table of its own, or transform: "
              "named"}});
  }
}

}  // namespace dt::scheduler
