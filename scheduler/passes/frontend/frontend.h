// Passes that turn the model of a job file into a graph of operators with shapes.
#pragma once

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// Turns the user's nodes and losses into operators. Ignores the graph that it is given.
Result<Graph> Expand(Graph graph, const PlanRequest& request);
// Infers all shapes and types again from inputs and parameters.
Result<Graph> InferShapes(Graph graph, const PlanRequest& request);

}  // namespace dt::scheduler
