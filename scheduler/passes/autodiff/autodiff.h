// Passes that add training to a model: gradients, and updates by the optimizer.
#pragma once

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// Appends the gradient nodes of trained parameters and of table rows; sets ParameterSpec::grad and
// TableUse::row_grad.
Result<Graph> Differentiate(Graph graph, const PlanRequest& request);
// Appends the step nodes: sums over slices if there are several, regularisation, clipping and
// updates.
Result<Graph> AddOptimizer(Graph graph, const PlanRequest& request);

}  // namespace dt::scheduler
