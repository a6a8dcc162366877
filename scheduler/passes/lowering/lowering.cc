#include "scheduler/passes/lowering/lowering.h"

#include "ops/sharding.h"

namespace dt::scheduler {

Result<Graph> Parallelize(Graph graph, const PlanRequest&) {
  for (const Node& node : graph.nodes) DT_TRY_STATUS(ShardingOf(graph, node).status());
  return graph;
}

Plan Unscheduled(Graph graph, const PlanRequest& request) {
  Plan plan;
  plan.graph = std::move(graph);
  plan.columns = request.columns;
  plan.batch_size = request.job.train.batch_size;
  plan.slices = request.slices;
  plan.seed = request.job.seed;
  return plan;
}

Plan Scheduled(Graph graph, const PlanRequest& request) {
  Plan plan = Unscheduled(std::move(graph), request);
  CutIntoSubgraphs(plan);
  PlanMemory(plan);
  return plan;
}

}  // namespace dt::scheduler
