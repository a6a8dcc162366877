// Whether a plan can be run: nothing of a plan is believed before this holds.
#pragma once

#include "common/base/status.h"
#include "common/plan/plan.h"

namespace dt {

// Checks the graph, the order, that subgraphs are convex, and the memory plan, for training and for
// evaluation. Error: Internal.
Status CheckPlan(const Plan& plan, TraitsLookup traits_of);

}  // namespace dt
