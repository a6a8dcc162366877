// One graph for the devices of a team, in which every value has a layout and every change of a
// layout is a communication node; and the graph of each device, which follows from it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/layout/layout.h"
#include "scheduler/parallel/node_cut.h"

namespace dt::scheduler {

struct TeamOptions {
  uint32_t devices = 1;
  std::map<std::string, Strategy, std::less<>> strategies;  // By node.
  int64_t samples = 1;  // The largest number of samples of a slice.
  bool all_to_all = true;
};

struct ParallelGraph {
  Graph graph;                  // Shapes are those of whole tensors.
  std::vector<Layout> layouts;  // By value.
  std::vector<NodeCut> cuts;    // By node; without loops for communication.
  uint32_t devices = 1;
};

// Errors: Invalid, one line for each node whose strategy cannot be used, with the rule, the shapes
// and the nearest valid strategy; NotYet, for what cannot be divided yet.
Result<ParallelGraph> Parallelized(const Graph& graph, const TeamOptions& team);

// The graph of one device of the team. Constant dimensions have their local length, and attributes
// that count positions likewise. The samples of a device are a symbol of their own: "B/4s2" is a
// part of B among 4, and the number of the part is device / 2 mod 4. Communication nodes have the
// devices of their group in the attribute `group`; nodes that read the samples in parts have
// `sample_part`, the pairs of parts and stride.
Graph PositionGraph(const ParallelGraph& parallel, DeviceIndex device);

}  // namespace dt::scheduler
