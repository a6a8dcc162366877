// Where nodes run and values lie.
#pragma once

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// Gives every node and value its device. Fills in request.report, if there is one.
Result<Graph> PlaceNodes(Graph graph, const PlanRequest& request);

}  // namespace dt::scheduler
