// Operators under strategies that only their parts can follow.
#pragma once

#include <optional>

#include "scheduler/passes/parallel/parallel_graph.h"
#include "scheduler/query/query_node.h"

namespace dt::scheduler {

// The cut of the operator as a whole, and the communication inside of it.
struct NodeInParts {
  NodeCut cut;
  NodeLayouts layouts;
  Json communication;
};
struct PartsQuestion {
  const QueryNode& node;
  const Strategy& strategy;
  uint32_t devices = 1;
  int64_t batch = 1;
};
// Nothing if the operator can follow the strategy as it is, or cannot be written by parts, or these
// cannot follow it either.
std::optional<NodeInParts> InParts(const PartsQuestion& question);

// The parts as a graph: its first values are the node's inputs, then come its outputs; parts are
// named after the operator.
struct NodeParts {
  Graph graph;
  TeamOptions team;
};
std::optional<NodeParts> PartsOf(const PartsQuestion& question);

// All strategies, including those that only parts can follow.
std::vector<Strategy> AllStrategies(const QueryNode& node, uint32_t devices);

}  // namespace dt::scheduler
