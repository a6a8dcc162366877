// What the scheduler hands to every worker: the final graph, cut into subgraphs, with the order and
// the memory of one rank. A plain value; wire/plan.h carries it.
#pragma once

#include <string>
#include <vector>

#include "common/graph/graph.h"

namespace dt {

// Connected, convex, of one device, stage and phase; its nodes in the order they run.
struct Subgraph {
  std::string name;
  Device device = Device::kCpu;
  Phase phase = Phase::kSlice;
  uint32_t stage = 0;
  std::vector<NodeIndex> nodes;
  friend bool operator==(const Subgraph&, const Subgraph&) = default;
};

struct Plan {
  Graph graph;
  std::vector<ColumnSpec> columns;  // Of the data set, in its order.
  uint32_t batch_size = 0;
  uint32_t slices = 0;
  uint64_t seed = 0;
  // Subgraphs in the order they run. Training: for each slice the slice subgraphs, then once the
  // step subgraphs, the first of which is the communication (sum_slices and gather_slices nodes,
  // one exchange).
  std::vector<Subgraph> train;
  std::vector<Subgraph> evaluate;  // Forward only; gives LossSpec::output.
  // Memory plan: values of kind kNode with equal slot share memory (their lives do not overlap
  // within the slice pass). slot[v] for each value, kNone for values from outside. Evaluation uses
  // the same slots.
  std::vector<uint32_t> slot;
  uint32_t slot_count = 0;
  friend bool operator==(const Plan&, const Plan&) = default;
};

// True for operators that join the slices of a step: all of them form one exchange.
bool IsCommunication(const Node& node);
// Values that are read after the slice pass: by step nodes, pushed, or reported. By value.
std::vector<bool> KeptValues(const Graph& graph);
// Structure, order, convexity of subgraphs and the memory plan, for training and evaluation.
// Nothing of a plan is believed before this holds. Error: Internal.
Status CheckPlan(const Plan& plan);

}  // namespace dt
