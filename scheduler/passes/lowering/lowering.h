// Passes from a placed graph to what the executor runs: fused operators, copies, subgraphs in
// order, and the memory plan.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "common/graph/graph_index.h"
#include "common/plan/plan.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// Fuses products and normalisations with what follows them in a layer, the gradients between two
// layers, and dot products with their concatenation, where no other node reads the values in
// between. These values are removed, and the others get new numbers.
Result<Graph> Fuse(Graph graph, const PlanRequest& request);
// Stores activations between layers in bf16, if the layers multiply in bf16.
Result<Graph> StoreActivationsInBf16(Graph graph, const PlanRequest& request);
// Adds copies and replicas where a value is read on the other device.
Result<Graph> InsertCopies(Graph graph, const PlanRequest& request);

// The order in which streams take nodes: slice nodes in three waves (before a pull arrives, until a
// push, after it), then step nodes. Topological.
std::vector<NodeIndex> NodesInStreamOrder(const GraphIndex& index);

// The plan of a graph, without subgraphs and memory plan.
Plan Unscheduled(Graph graph, const PlanRequest& request);
// Fills in Plan::train and Plan::evaluate. REQUIRES: the graph has its copies.
void CutIntoSubgraphs(Plan& plan);
// Fills in Plan::slot. REQUIRES: the plan has its subgraphs.
void PlanMemory(Plan& plan);
// Unscheduled, CutIntoSubgraphs and PlanMemory in one call.
Plan Scheduled(Graph graph, const PlanRequest& request);

}  // namespace dt::scheduler
