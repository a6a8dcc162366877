// Operators under strategies that only their parts can follow.
#pragma once

#include <optional>

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
// Nothing if the operator cannot be written by parts, or these cannot follow the strategy either.
std::optional<NodeInParts> InParts(const PartsQuestion& question);

// All strategies, including those that only parts can follow.
std::vector<Strategy> AllStrategies(const QueryNode& node, uint32_t devices);

}  // namespace dt::scheduler
