#include "scheduler/plan/plan.h"

#include <set>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/plan/check_plan.h"
#include "ops/op_spec.h"
#include "scheduler/passes/lowering/lowering.h"
#include "scheduler/plan/pass_list.h"
#include "scheduler/plan/step_time.h"
#include "scheduler/plan/table_locations.h"

namespace dt::scheduler {
namespace {

// These passes run after those of the list, and work on the plan.
constexpr std::string_view kSubgraphsPass = "subgraphs", kMemoryPass = "memory_plan";

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

}  // namespace

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const GraphPass& pass : GraphPasses()) names.emplace_back(pass.name);
  for (const std::string_view pass : {kSubgraphsPass, kMemoryPass}) names.emplace_back(pass);
  return names;
}

Result<Plan> MakePlan(const PlanRequest& request) {
  return MakePlan(request, [](std::string_view, const Plan&) {});
}

Result<Plan> MakePlan(const PlanRequest& asked, const SeenPass& seen) {
  DT_TRY_STATUS(CheckRequest(asked));
  PlanRequest request = asked;
  TableLocations tables = ChooseTableLocations(asked);
  request.on_worker = std::move(tables.on_worker);
  Plan plan = Unscheduled({}, request);
  for (const GraphPass& pass : GraphPasses()) {
    DT_TRY(plan.graph, pass.run(std::move(plan.graph), request));
    DT_TRY_STATUS(Prefixed(CheckGraph(plan.graph), pass.name));
    if (pass.name == kPlacePass && request.report != nullptr) {
      request.report->step = TimeOfStep(plan.graph, request);
      request.report->machine = request.machine;
      request.report->table_why = std::move(tables.why);
    }
    seen(pass.name, plan);
  }
  CutIntoSubgraphs(plan);
  seen(kSubgraphsPass, plan);
  PlanMemory(plan);
  DT_TRY_STATUS(CheckPlan(plan, TraitsOf));
  seen(kMemoryPass, plan);
  return plan;
}

std::vector<std::string> SharedRows(const Plan& plan) {
  std::vector<std::set<uint32_t>> columns(plan.graph.tables.size());
  for (const LookupSpec& lookup : plan.graph.lookups) {
    for (const uint32_t c : lookup.columns) {
      const ColumnSpec& column = plan.columns[c];
      const bool plain = column.type == ColumnType::kId && column.transform.empty();
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
