// Sharding rules that depend on a node's shapes or attributes, in the notation of ops/sharding.h.
#pragma once

#include <string>
#include <vector>

#include "common/graph/graph.h"

namespace dt {

// For operators whose inputs and outputs have one shape, or are right-aligned and broadcast.
std::string BroadcastLoops(const Graph& graph, const Node& node);
// The term of a tensor, for example "ab.d"; dimensions marked in `whole` are not cut.
std::string AxesText(const std::vector<bool>& whole);
// For one input and one output that differ along the attribute `axis` (default: the last).
std::string OneAxisLoops(const Graph& graph, const Node& node);
// For an output with the elements of the input in the same order and an attribute `shape`. Loops
// are the dimensions that both shapes have in common, from the left.
std::string RegroupedLoops(const Graph& graph, const Node& node);
// Nothing may be cut.
std::string UncutLoops(const Graph& graph, const Node& node);

}  // namespace dt
