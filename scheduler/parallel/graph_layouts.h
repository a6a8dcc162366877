// Layouts for all values of a graph, from the strategies of its nodes. A pure function over plain
// values; it knows no operators, only their sharding rules.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/layout/redistribute.h"
#include "scheduler/parallel/node_cut.h"

namespace dt::scheduler {

enum class ValueOrigin : uint8_t {
  kNode,       // Lies as its producer leaves it.
  kInput,      // Is read from the data by each reader as it needs it.
  kRows,       // Rows of a table: each device has those of its samples, with all columns.
  kParameter,  // Lies as its readers need it, who must agree.
};

struct LayoutValue {
  std::string name;
  // With a multiple of the devices for samples: they are divided in units of 1 / devices of their
  // number, rounded up, so that parts of parts are parts, however many samples there are.
  Shape shape;
  bool varies = false;  // A dimension of it varies.
  ValueOrigin origin = ValueOrigin::kNode;
};

struct LayoutNode {
  std::string name;
  Sharding rule;
  std::vector<ValueIndex> inputs, outputs;
  // Without a strategy or a cut: samples are cut over all devices; a gradient node is cut as its
  // forward node.
  std::optional<Strategy> strategy;
  std::optional<NodeCut> cut;   // Used if there is no strategy.
  std::optional<Strategy> out;  // How outputs shall lie.
  // For a gradient node: the node that it differentiates. What it reads, other than this node's
  // inputs and outputs and what its other gradient nodes make, is the gradient of output 0.
  NodeIndex forward = kNone;
  ValueIndex like = kNone;  // The outputs lie as this value: sums of gradients of a parameter.
};

// A value that is read outside of the graph.
struct LayoutResult {
  ValueIndex value = kNone;
  ValueIndex like = kNone;      // It shall lie as this value; kNone: whole on every device.
  bool may_be_partial = false;  // Its terms are added outside.
  // Each device needs its own samples at least, with all columns; `like` is not used.
  bool own_samples = false;
};

struct LayoutProblem {
  std::vector<LayoutValue> values;
  std::vector<LayoutNode> nodes;  // In a topological order.
  std::vector<LayoutResult> results;
  uint32_t devices = 1;
  bool all_to_all = true;
};

// A value that changes its layout before a node reads it.
struct ValueChange {
  ValueIndex value = kNone;
  uint32_t after = kNone;  // The change that gives `from`; kNone: as the producer made it.
  Layout from, to;
  Redistribution how;
};

// Where a node takes an input from.
struct NodeInput {
  // Index into GraphLayouts::changes; kNone: the value as its producer made it, or as it is bound.
  uint32_t change = kNone;
};

struct GraphLayouts {
  std::vector<NodeCut> cuts;         // By node.
  std::vector<NodeLayouts> layouts;  // By node: as it reads its inputs, and makes its outputs.
  std::vector<std::vector<NodeInput>> inputs;  // By node and input.
  std::vector<ValueChange> changes;            // Each is made once, for all its readers.
  std::vector<std::optional<Layout>> values;   // Node outputs as made; parameters that are read.
  // By value: the change that `out` of its node asks for, or that reduces a partial result which no
  // node reads; kNone: there is none.
  std::vector<uint32_t> at_producer;
  std::vector<uint32_t> results;  // By result: the change that gives it; kNone: as made.
};

// Why strategies cannot be used, node by node.
struct NodeProblem {
  NodeIndex node = kNone;
  CutProblem problem;
  std::optional<Strategy> nearest;
};

// A partial result is reduced when it is made, or later, by a reader that is linear in it, if that
// moves fewer bytes. All decisions depend on shapes and strategies only. Fills `problems` with
// everything that is wrong; the result is of use only if it stays empty.
GraphLayouts FindLayouts(const LayoutProblem& problem, std::vector<NodeProblem>& problems);

}  // namespace dt::scheduler
