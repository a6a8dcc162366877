#include "scheduler/passes/lowering/lowering.h"

namespace dt::scheduler {

Plan Unscheduled(Graph graph, const PlanRequest& request) {
  Plan plan;
  plan.graph = std::move(graph);
  plan.columns = request.columns;
  plan.batch_size = request.job.train.batch_size;
  plan.slices = request.slices;
  plan.seed = request.job.seed;
  plan.devices = request.devices();
  plan.position = request.position;
  plan.sharers = request.job.parallel.optimizer.group;
  return plan;
}

Plan Scheduled(Graph graph, const PlanRequest& request) {
  Plan plan = Unscheduled(std::move(graph), request);
  CutIntoSubgraphs(plan);
  PlanMemory(plan);
  return plan;
}

}  // namespace dt::scheduler
