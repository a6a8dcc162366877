// Kernels read a node's attributes without checking that they exist and have the right type, so a
// plan that comes from elsewhere is checked once, before it is bound.
#pragma once

#include "common/base/status.h"
#include "common/graph/graph.h"

namespace dt::worker {

// Malformed: a node lacks an attribute that its operator needs, or has one of another type.
Status CheckAttrs(const Graph& graph);

}  // namespace dt::worker
