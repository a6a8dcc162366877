// The values of a graph that share memory, and a check that the slots of a plan are safe.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "common/graph/graph_index.h"
#include "common/plan/plan.h"

namespace dt {

// By value: the value in whose memory it lies. It is another one if the node only gives it another
// shape (OpTraits::same_bytes), both are on the processor, nobody writes them in place, and neither
// is read after the pass. In all other cases it is the value itself.
std::vector<ValueIndex> MemoryOwners(const GraphIndex& index);

// Part of CheckPlan: each input is still in its slot when it is read, whatever the relative speed
// of the streams. REQUIRES: the slots are in range, and CheckPlan has accepted the order. Error:
// Internal.
Status CheckMemory(const Plan& plan, const GraphIndex& index);

}  // namespace dt
