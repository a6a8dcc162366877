#include "scheduler/passes/lowering/graph_fuser.h"

#include <algorithm>

#include "ops/op_spec.h"
#include "scheduler/composites/infer_node.h"

namespace dt::scheduler {
namespace {

// Calls f for every value of `graph` that something other than a node refers to.
template <class F>
void EachRoot(Graph& graph, const F& f) {
  for (InputSpec& input : graph.inputs) f(input.value);
  for (ParameterSpec& p : graph.parameters) {
    f(p.value), f(p.grad), f(p.pushed), f(p.state_of);
  }
  for (ReplicaSpec& replica : graph.replicas) f(replica.value), f(replica.of);
  for (PartSpec& part : graph.parts) f(part.value), f(part.of);
  for (TableUse& table : graph.tables) f(table.rows), f(table.row_grad), f(table.store);
  for (LossSpec& loss : graph.losses) f(loss.output), f(loss.label), f(loss.loss);
}

}  // namespace

GraphFuser::GraphFuser(Graph graph, std::span<const std::string> without_kernel)
    : unfused_(std::move(graph)),
      index_(unfused_, TraitsOf),
      graph_(unfused_),
      without_kernel_(without_kernel),
      reported_(graph_.values.size(), false),
      part_of_(graph_.nodes.size(), kNone) {
  EachRoot(graph_, [this](ValueIndex v) {
    if (v != kNone) reported_[v] = true;
  });
}

bool GraphFuser::IsBeside(NodeIndex n, std::string_view op, const Node& other) const {
  const Node& node = graph_.nodes[n];
  return node.op == op && node.device == other.device && node.phase == other.phase &&
         node.stage == other.stage;
}

bool GraphFuser::IsOnlyReader(ValueIndex v, NodeIndex reader) const {
  return !reported_[v] && readers(v).size() == 1 && readers(v).front() == reader;
}

NodeIndex GraphFuser::OnlyReader(const Node& node, std::string_view op) const {
  const ValueIndex v = node.outputs[0];
  if (readers(v).size() != 1 || reported_[v]) return kNone;
  const NodeIndex reader = readers(v).front();
  return IsBeside(reader, op, node) && graph_.nodes[reader].inputs[0] == v ? reader : kNone;
}

NodeIndex GraphFuser::OnlyMaker(NodeIndex n, size_t i, std::string_view op) const {
  const ValueIndex v = graph_.nodes[n].inputs[i];
  const NodeIndex maker = graph_.value(v).producer;
  if (maker == kNone || !IsOnlyReader(v, n)) return kNone;
  return IsBeside(maker, op, graph_.nodes[n]) ? maker : kNone;
}

bool GraphFuser::MayBe(const Node& node, std::string_view op) const {
  return node.device != Device::kGpu || std::ranges::count(without_kernel_, op) == 0;
}

Result<Graph> GraphFuser::Finish() && {
  const std::vector<NodeIndex> wholes = DropParts();
  DropValues();
  for (const NodeIndex n : wholes) DT_TRY_STATUS(InferNode(graph_, n));
  return std::move(graph_);
}

NodeIndex GraphFuser::WholeOf(NodeIndex n) const {
  while (part_of_[n] != kNone) n = part_of_[n];
  return n;
}

std::vector<NodeIndex> GraphFuser::DropParts() {
  std::vector<NodeIndex> moved(graph_.nodes.size(), kNone), wholes;
  NodeIndex count = 0;
  for (size_t n = 0; n < moved.size(); ++n) {
    if (part_of_[n] == kNone) moved[n] = count++;
  }
  std::vector<Node> nodes;
  for (size_t n = 0; n < moved.size(); ++n) {
    if (part_of_[n] != kNone) continue;
    Node& node = nodes.emplace_back(std::move(graph_.nodes[n]));
    if (node.forward == kNone) continue;
    node.forward = moved[WholeOf(node.forward)];
  }
  graph_.nodes = std::move(nodes);
  for (NodeIndex n = 0; n < moved.size(); ++n) {
    if (part_of_[n] != kNone) wholes.push_back(moved[WholeOf(n)]);
  }
  return wholes;
}

void GraphFuser::DropValues() {
  for (Value& value : graph_.values) value.producer = kNone;
  for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
    for (const ValueIndex v : graph_.nodes[n].outputs) graph_.values[v].producer = n;
  }
  std::vector<ValueIndex> moved(graph_.values.size(), kNone);
  std::vector<Value> values;
  for (size_t v = 0; v < moved.size(); ++v) {
    Value& value = graph_.values[v];
    if (value.kind == ValueKind::kNode && value.producer == kNone) continue;
    moved[v] = static_cast<ValueIndex>(values.size());
    values.push_back(std::move(value));
  }
  graph_.values = std::move(values);
  const auto move = [&moved](ValueIndex& v) { v = v == kNone ? kNone : moved[v]; };
  for (Node& node : graph_.nodes) {
    for (ValueIndex& v : node.inputs) move(v);
    for (ValueIndex& v : node.outputs) move(v);
  }
  EachRoot(graph_, move);
}

}  // namespace dt::scheduler
