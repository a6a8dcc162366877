#include "scheduler/plan/plan.h"

#include <set>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/plan/check_plan.h"
#include "ops/op_spec.h"
#include "ops/sharding.h"
#include "scheduler/plan/passes.h"

namespace dt::scheduler {
namespace {

constexpr GraphPass kGraphPasses[] = {
    {"expand", Expand},     {"infer", InferShapes}, {"differentiate", Differentiate},
    {"optimize", Optimize}, {"place", Place},       {"parallelize", Parallelize},
    {"fuse", Fuse},         {"narrow", Narrow},     {"copies", InsertCopies}};

// A plan without subgraphs, and without memory.
Plan Uncut(Graph graph, const PlanRequest& request) {
  Plan plan;
  plan.graph = std::move(graph);
  plan.columns = request.columns;
  plan.batch_size = request.job.train.batch_size;
  plan.slices = request.slices;
  plan.seed = request.job.seed;
  return plan;
}

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

Result<Graph> Parallelize(Graph graph, const PlanRequest&) {
  for (const Node& node : graph.nodes) DT_TRY_STATUS(ShardingOf(graph, node).status());
  return graph;
}

Plan Cut(Graph graph, const PlanRequest& request) {
  Plan plan = Uncut(std::move(graph), request);
  Partition(plan);
  PlanMemory(plan);
  return plan;
}

std::span<const GraphPass> GraphPasses() { return kGraphPasses; }

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const GraphPass& pass : kGraphPasses) names.emplace_back(pass.name);
  names.insert(names.end(), {"partition", "schedule"});
  return names;
}

Result<Plan> MakePlan(const PlanRequest& request) {
  return MakePlan(request, [](std::string_view, const Plan&) {});
}

Result<Plan> MakePlan(const PlanRequest& asked, const SeenPass& seen) {
  DT_TRY_STATUS(CheckRequest(asked));
  PlanRequest request = asked;
  TablePlaces tables = PlaceTables(asked);
  request.on_worker = std::move(tables.on_worker);
  Plan plan = Uncut({}, request);
  for (const GraphPass& pass : kGraphPasses) {
    DT_TRY(plan.graph, pass.run(std::move(plan.graph), request));
    DT_TRY_STATUS(Prefixed(CheckGraph(plan.graph), pass.name));
    if (pass.name == "place" && request.report != nullptr) {
      request.report->step = TimeOfStep(plan.graph, request);
      request.report->machine = request.machine;
      request.report->table_why = std::move(tables.why);
    }
    seen(pass.name, plan);
  }
  Partition(plan);
  seen("partition", plan);
  PlanMemory(plan);
  DT_TRY_STATUS(CheckPlan(plan, TraitsOf));
  seen("schedule", plan);
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
