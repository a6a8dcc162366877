// One graph for the devices of a team, in which every value has a layout and every change of a
// layout is a communication node; and the graph of each device, which follows from it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/layout/layout.h"
#include "common/layout/sample_part.h"
#include "scheduler/parallel/node_cut.h"

namespace dt::scheduler {

using Strategies = std::map<std::string, Strategy, std::less<>>;  // By node.
using NodeCuts = std::map<std::string, NodeCut, std::less<>>;     // By node.

struct TeamOptions {
  uint32_t devices = 1;
  Strategies strategies;
  Strategies outs;      // How outputs shall lie.
  NodeCuts cuts;        // The cuts of nodes that ByParts has written.
  int64_t samples = 1;  // The largest number of samples of a slice.
  bool all_to_all = true;
};

struct ParallelGraph {
  Graph graph;                  // Shapes are those of whole tensors.
  std::vector<Layout> layouts;  // By value.
  std::vector<NodeCut> cuts;    // By node; without loops for communication.
  uint32_t devices = 1;
  std::vector<DeviceGroups> groups;  // Entry g gives Graph::groups[g] of each device.
  std::vector<HeldGroups> held;      // By value.
};

// Before differentiation: nodes whose strategy cuts a loop that needs a reduction inside become
// several nodes, and their strategy the cuts of these. So do nodes without a strategy that only
// their parts allow to cut along the samples. Errors: those of shapes.
Result<Graph> ByParts(const Graph& graph, TeamOptions& team);

// Errors: Invalid, one line for each node whose strategy cannot be used, with the rule, the shapes
// and the nearest valid strategy; NotYet, for what cannot be divided yet.
Result<ParallelGraph> Parallelized(const Graph& graph, const TeamOptions& team);

// Checks what workers of a team cannot do yet, though a graph says it: NotYet.
Status CheckForWorkers(const ParallelGraph& parallel);

// The graph of one device of the team. Constant dimensions have their local length, and attributes
// that count positions likewise. The samples of a device are a symbol of their own, "B/4s2" for the
// parts (4, 2). Nodes that read the samples in parts have `sample_part`.
Graph PositionGraph(const ParallelGraph& parallel, DeviceIndex device);

// By device: a number that is equal for devices with equal lengths of everything. Their graphs
// differ only in what MoveTo sets.
std::vector<uint32_t> ShapeClasses(const ParallelGraph& parallel);
// Makes a graph that passes have made of a device's graph that of another device of its class: its
// groups, and where its parts begin.
void MoveTo(const ParallelGraph& parallel, DeviceIndex device, Graph& graph);

}  // namespace dt::scheduler
