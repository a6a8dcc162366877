// Kernels read a node's attributes without asking whether they are there and of their type: a plan
// that comes from elsewhere is asked once, before it is bound.
#pragma once

#include "common/base/status.h"
#include "common/graph/graph.h"

namespace dt::worker {

// Malformed: a node lacks an attribute that its operator needs, or has one of another type.
Status CheckAttrs(const Graph& graph);

}  // namespace dt::worker
