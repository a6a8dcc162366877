// The predicted time of a step of the whole job.
#pragma once

#include "common/graph/graph.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// REQUIRES: `graph` is placed, and request.report describes the placement.
StepTime TimeOfStep(const Graph& graph, const PlanRequest& request);

}  // namespace dt::scheduler
