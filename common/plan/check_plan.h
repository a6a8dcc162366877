// Checks whether a plan can be run. No part of a plan is used before this check.
#pragma once

#include "common/base/status.h"
#include "common/plan/plan.h"

namespace dt {

// Checks, for training and for evaluation, the graph, the order, that subgraphs are convex, and the
// memory plan. Error: Internal.
Status CheckPlan(const Plan& plan, TraitsLookup traits_of);

}  // namespace dt
