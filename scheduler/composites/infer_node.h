// Infers the shapes of one node, and adds its name to errors.
#pragma once

#include <string_view>

#include "common/base/status.h"
#include "common/graph/graph.h"

namespace dt::scheduler {

// Fills dtype and shape of the node's outputs. The error names the node, its file and line.
Status InferNode(Graph& graph, NodeIndex node);
// Invalid if a tensor of this shape would be too large. `what` names the tensor in the error.
Status CheckBounds(const Graph& graph, std::string_view what, const SymShape& shape);
// The status with the node's name, file and line.
Status AboutNode(Status status, std::string_view node, const SourceMark& mark);
// The status with file and line, if they are known.
Status AtMark(Status status, const SourceMark& mark);

}  // namespace dt::scheduler
