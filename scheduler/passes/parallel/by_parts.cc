#include <algorithm>

#include <fmt/format.h>

#include "common/base/check.h"
#include "ops/op_spec.h"
#include "ops/sharding.h"
#include "scheduler/composites/infer_node.h"
#include "scheduler/passes/parallel/parallel_graph.h"

namespace dt::scheduler {
namespace {

// The number of parts of each dimension.
std::vector<DimParts> PartsOf(const Layout& layout) {
  std::vector<DimParts> parts;
  for (const CutDim& dim : layout.dims) {
    DimParts of;
    for (const CutFactor& factor : dim) {
      of.push_back(1);
      for (const AxisIndex axis : factor.axes) of.back() *= layout.matrix[axis];
    }
    if (std::all_of(of.begin() + (of.empty() ? 0 : 1), of.end(),
                    [](uint32_t n) { return n == 1; })) {
      of.resize(1, 1);
    }
    parts.push_back(std::move(of));
  }
  return parts;
}

class Rewriter : public PartsContext {
 public:
  Rewriter(const Graph& graph, uint32_t devices, Strategies& strategies)
      : old_(graph), devices_(devices), strategies_(strategies), graph_(graph) {
    graph_.nodes.clear();
  }

  Result<Graph> Run() {
    for (const Node& node : old_.nodes) {
      DT_TRY(const bool parts, HasParts(node));
      if (parts) {
        DT_TRY_STATUS(Rewrite(node));
        continue;
      }
      for (const ValueIndex v : node.outputs) {
        graph_.values[v].producer = static_cast<NodeIndex>(graph_.nodes.size());
      }
      graph_.nodes.push_back(node);
    }
    return std::move(graph_);
  }

  const Graph& graph() const override { return graph_; }
  const Node& node() const override { return current_; }

  ValueIndex Add(std::string_view op, std::vector<ValueIndex> inputs, Attrs attrs) override {
    Node added = current_;
    added.name = fmt::format("{}.{}", current_.name, op);
    if (const size_t same = names_[added.name]++; same > 0) added.name += fmt::format(".{}", same);
    added.op = op;
    added.attrs = std::move(attrs);
    added.inputs = std::move(inputs);
    const NodeIndex index = graph_.AddNode(std::move(added), 1);
    if (Status status = InferNode(graph_, index); !status.ok() && error_.ok()) error_ = status;
    if (error_.ok()) SetStrategy(index);
    return graph_.nodes[index].outputs[0];
  }

 private:
  // True if its strategy is not possible for the node, but for its parts.
  Result<bool> HasParts(const Node& node) const {
    const auto strategy = strategies_.find(node.name);
    if (FindOp(node.op)->by_parts == nullptr || strategy == strategies_.end()) return false;
    DT_TRY(const Sharding rule, ShardingOf(old_, node));
    const auto cut = CutOf(rule, strategy->second, devices_);
    const auto* problem = std::get_if<CutProblem>(&cut);
    if (problem == nullptr || problem->rule != "whole") return false;
    return std::holds_alternative<NodeCut>(CutOf(WithAllCuts(rule), strategy->second, devices_));
  }

  Status Rewrite(const Node& node) {
    current_ = node;
    names_.clear();
    parts_.clear();
    DT_TRY(const Sharding narrow, ShardingOf(old_, node));
    const Sharding rule = WithAllCuts(narrow);
    const NodeCut cut = std::get<NodeCut>(CutOf(rule, strategies_.at(node.name), devices_));
    const Strategy inputs = StrategyOf(rule, cut);
    for (size_t i = 0; i < node.inputs.size(); ++i) parts_[node.inputs[i]] = inputs[i];
    strategies_.erase(node.name);
    FindOp(node.op)->by_parts(*this);
    DT_TRY_STATUS(error_);
    // The last node takes over the output.
    Node& last = graph_.nodes.back();
    DT_CHECK(last.outputs[0] + 1 == graph_.values.size());
    graph_.values.pop_back();
    last.outputs = node.outputs;
    last.name = node.name;
    strategies_[node.name] = strategies_[last_name_];
    strategies_.erase(last_name_);
    graph_.values[node.outputs[0]].producer = static_cast<NodeIndex>(graph_.nodes.size() - 1);
    return OkStatus();
  }

  // Inputs are cut as they are known to be, and the output as follows from them.
  void SetStrategy(NodeIndex index) {
    const Node& added = graph_.nodes[index];
    const Result<Sharding> rule = ShardingOf(graph_, added);
    DT_CHECK(rule.ok());
    Strategy strategy;
    for (const ValueIndex v : added.inputs) strategy.push_back(parts_.at(v));
    const auto cut = CutOf(*rule, strategy, devices_);
    if (const auto* problem = std::get_if<CutProblem>(&cut)) {
      error_ = Internal("{}: {}", added.name, problem->what);
      return;
    }
    parts_[added.outputs[0]] = PartsOf(LayoutsOf(*rule, std::get<NodeCut>(cut)).outputs[0]);
    strategies_[added.name] = std::move(strategy);
    last_name_ = added.name;
  }

  const Graph& old_;
  const uint32_t devices_;
  Strategies& strategies_;
  Graph graph_;
  Status error_;

  // The node being written by parts.
  Node current_;
  std::string last_name_;                              // The name of the node added last.
  std::map<std::string, size_t> names_;                // How many nodes have been given a name.
  std::map<ValueIndex, std::vector<DimParts>> parts_;  // How values are cut.
};

}  // namespace

Result<Graph> ByParts(const Graph& graph, uint32_t devices, Strategies& strategies) {
  return Rewriter(graph, devices, strategies).Run();
}

}  // namespace dt::scheduler
