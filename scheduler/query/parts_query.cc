#include "scheduler/query/parts_query.h"

#include "ops/op_spec.h"

namespace dt::scheduler {
namespace {

// The communication nodes of a graph, in order.
Json CommunicationOf(const ParallelGraph& parallel) {
  Json steps = Json::array();
  for (NodeIndex n = 0; n < parallel.graph.nodes.size(); ++n) {
    const Node& node = parallel.graph.nodes[n];
    if (TraitsOf(node.op).kind != OpKind::kCommunication) continue;
    const auto group = static_cast<size_t>(IntAttr(node.attrs, "group", 0));
    const DeviceGroups& groups = parallel.groups[group];
    Json step = {{"op", node.op == "all_reduce"       ? "AllReduce"
                        : node.op == "reduce_scatter" ? "ReduceScatter"
                        : node.op == "all_gather"     ? "AllGather"
                        : node.op == "all_to_all"     ? "AllToAll"
                                                      : "Split"},
                 {"node", parallel.graph.nodes[n].name}};
    if (node.op == "all_reduce" || node.op == "reduce_scatter") {
      step["reduce"] = TextAttr(node.attrs, "reduce", "sum");
    }
    if (node.op != "all_reduce") step["dim"] = IntAttr(node.attrs, "dim", 0);
    step["groups"] = GroupsJson(GroupsAlong(groups.matrix, groups.axes), Layout());
    steps.push_back(std::move(step));
  }
  return steps;
}

// A graph of the node alone.
Graph GraphOf(const QueryNode& of) {
  Graph graph;
  Node node = of.as_node;
  node.inputs.clear();
  for (size_t i = 0; i < of.inputs.size(); ++i) {
    Value value;
    value.name = fmt::format("input{}", i);
    value.shape = of.inputs[i];
    value.kind = ValueKind::kParameter;
    node.inputs.push_back(graph.AddValue(std::move(value)));
  }
  const NodeIndex index = graph.AddNode(std::move(node), of.outputs.size());
  for (size_t o = 0; o < of.outputs.size(); ++o) {
    graph.values[graph.nodes[index].outputs[o]].shape = of.outputs[o];
  }
  return graph;
}

bool HasParts(const QueryNode& node) {
  const OpSpec* const op = FindOp(node.as_node.op);
  return op != nullptr && op->by_parts != nullptr;
}

}  // namespace

std::optional<NodeParts> PartsOf(const PartsQuestion& question) {
  if (!HasParts(question.node)) return std::nullopt;
  const Graph graph = GraphOf(question.node);
  NodeParts parts;
  parts.team = {.devices = question.devices,
                .strategies = {{graph.nodes[0].name, question.strategy}},
                .samples = question.batch};
  Result<Graph> written = ByParts(graph, parts.team);
  if (!written.ok() || written->nodes.size() == 1) return std::nullopt;
  parts.graph = *std::move(written);
  return parts;
}

std::optional<NodeInParts> InParts(const PartsQuestion& question) {
  const std::optional<NodeParts> parts = PartsOf(question);
  if (!parts) return std::nullopt;
  const Result<ParallelGraph> parallel = Parallelized(parts->graph, parts->team);
  if (!parallel.ok()) return std::nullopt;
  const Sharding rule = WithAllCuts(question.node.rule);
  NodeInParts answer;
  answer.cut = std::get<NodeCut>(CutOf(rule, question.strategy, question.devices));
  answer.layouts = LayoutsOf(rule, answer.cut);
  answer.communication = CommunicationOf(*parallel);
  return answer;
}

std::vector<Strategy> AllStrategies(const QueryNode& node, uint32_t devices) {
  const Sharding rule = HasParts(node) ? WithAllCuts(node.rule) : node.rule;
  std::vector<Strategy> strategies;
  for (const std::vector<uint32_t>& parts : AllParts(rule, devices)) {
    strategies.push_back(StrategyOf(rule, CutOfParts(rule, parts, devices)));
  }
  return strategies;
}

}  // namespace dt::scheduler
