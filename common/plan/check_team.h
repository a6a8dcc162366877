// Checks the plans of a team together: whether every communication has its counterparts, and
// whether the team could come to a standstill.
#pragma once

#include <span>

#include "common/base/status.h"
#include "common/plan/plan.h"

namespace dt {

// `plans`: by position. Errors: Internal, naming the nodes and positions,
//   - if a member of a group has no such communication, or one of another operator, type or size;
//   - if workers wait for one another in a circle, where each stream keeps its order and a
//     communication ends when all members have come to it.
// REQUIRES: CheckPlan accepts each plan.
Status CheckTeam(std::span<const Plan> plans, TraitsLookup traits_of);

}  // namespace dt
