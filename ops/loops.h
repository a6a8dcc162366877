// Sharding rules that depend on a node's shapes or attributes, in the notation of ops/sharding.h.
#pragma once

#include <string>
#include <vector>

#include "common/graph/graph.h"

namespace dt {

// Of operators whose inputs and outputs are alike, or right-aligned with dimensions of 1 repeated.
std::string BroadcastLoops(const Graph& graph, const Node& node);
// "ab.d": of a tensor of `rank` dimensions of which those that `whole` marks are not cut.
std::string AxesText(const std::vector<bool>& whole);
// One input and one output that differ along the attribute `axis` (default the last).
std::string OneAxisLoops(const Graph& graph, const Node& node);
// One output with the elements of one input in the same order; its attribute is `shape`. Loops run
// along what dimensions of both have in common, from the left.
std::string RegroupedLoops(const Graph& graph, const Node& node);
// Nothing is cut.
std::string UncutLoops(const Graph& graph, const Node& node);

}  // namespace dt
