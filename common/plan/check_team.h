// Checks the plans of a team together: whether every communication has its counterparts, and
// whether the team could come to a standstill.
#pragma once

#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/plan/plan.h"

namespace dt {

// A position of a team. Positions may share a plan, apart from its groups.
struct TeamMember {
  const Plan* plan = nullptr;
  std::vector<GroupSpec> groups;
};

// `members`: by position. Errors: Internal, naming the nodes and positions,
//   - if a member of a group is in another one, or has no such communication, or one of another
//     operator, type or size;
//   - if workers wait for one another in a circle, where each has an order of communications, and
//     one ends when all members have come to it.
// REQUIRES: CheckPlan accepts each plan, so that all else within a worker follows that order.
Status CheckTeam(std::span<const TeamMember> members, TraitsLookup traits_of);
Status CheckTeam(std::span<const Plan> plans, TraitsLookup traits_of);

}  // namespace dt
