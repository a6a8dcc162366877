// From the model of a job file to a graph of operators with shapes.
#pragma once

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// The user's nodes and losses become operators. Ignores the given graph.
Result<Graph> Expand(Graph graph, const PlanRequest& request);
// Infers every shape and dtype anew, from inputs and parameters.
Result<Graph> InferShapes(Graph graph, const PlanRequest& request);

}  // namespace dt::scheduler
