// The pass that places nodes and values on devices.
#pragma once

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// Gives every node and value its device. Fills in request.report if it is not null.
Result<Graph> PlaceNodes(Graph graph, const PlanRequest& request);

}  // namespace dt::scheduler
