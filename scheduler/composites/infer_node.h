// One node's shapes, and how its errors name it.
#pragma once

#include <string_view>

#include "common/base/status.h"
#include "common/graph/graph.h"

namespace dt::scheduler {

// Fills dtype and shape of the node's outputs. The error names the node, its file and line.
Status InferNode(Graph& graph, NodeIndex node);
// Invalid: a tensor of this shape, `what`, would be too large.
Status CheckBounds(const Graph& graph, std::string_view what, const SymShape& shape);
// An Invalid (or other) status about a node as the user knows it.
Status AboutNode(Status status, std::string_view node, const SourceMark& mark);
// With the place, if it is known.
Status AtMark(Status status, const SourceMark& mark);

}  // namespace dt::scheduler
