// From a placed graph to what the executor runs: fused operators, copies, subgraphs in order, and
// memory.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "common/graph/graph_index.h"
#include "common/plan/plan.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// Every worker has the whole graph, and a part of the batch: nothing is cut. Every node's sharding
// rule must fit its shapes.
Result<Graph> Parallelize(Graph graph, const PlanRequest& request);
// Products with their bias and activation, and the gradients between two layers, become one node
// each where nobody else reads what lies between. Values that are gone have no number any more.
Result<Graph> Fuse(Graph graph, const PlanRequest& request);
// Activations between layers that are multiplied in bf16 are stored in it.
Result<Graph> StoreActivationsInBf16(Graph graph, const PlanRequest& request);
// Adds copies and replicas where a value is read on the other device.
Result<Graph> InsertCopies(Graph graph, const PlanRequest& request);

// The order in which streams take nodes: slice nodes by what they wait for and what waits for them,
// then step nodes. Topological.
std::vector<NodeIndex> NodesInStreamOrder(const GraphIndex& index);

// The plan of a graph, without subgraphs and without memory.
Plan Unscheduled(Graph graph, const PlanRequest& request);
// Fills in Plan::train and Plan::evaluate. REQUIRES: the graph has its copies.
void CutIntoSubgraphs(Plan& plan);
// Fills in Plan::slot. REQUIRES: the plan has its subgraphs.
void PlanMemory(Plan& plan);
// All three.
Plan Scheduled(Graph graph, const PlanRequest& request);

}  // namespace dt::scheduler
