// From a model that predicts to one that learns.
#pragma once

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// Appends gradient nodes where a trained parameter or rows of a table are reached; sets
// ParameterSpec::grad and TableUse::row_grad.
Result<Graph> Differentiate(Graph graph, const PlanRequest& request);
// Appends the step nodes: sums over slices if there are several, regularisation, clipping, updates.
Result<Graph> AddOptimizer(Graph graph, const PlanRequest& request);

}  // namespace dt::scheduler
