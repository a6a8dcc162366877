#include <algorithm>

#include <fmt/format.h>

#include "common/base/check.h"
#include "ops/op_spec.h"
#include "ops/sharding.h"
#include "scheduler/composites/infer_node.h"
#include "scheduler/passes/parallel/parallel_graph.h"

namespace dt::scheduler {
namespace {

class Rewriter : public PartsContext {
 public:
  Rewriter(const Graph& graph, TeamOptions& team) : old_(graph), team_(team), graph_(graph) {
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

  int64_t parts_of(size_t input, size_t dim) const override {
    const Layout& layout = inputs_[input];
    int64_t parts = 1;
    for (const CutFactor& factor : layout.dims[dim]) {
      for (const AxisIndex axis : factor.axes) parts *= layout.matrix[axis];
    }
    return parts;
  }

  ValueIndex Add(std::string_view op, std::vector<ValueIndex> inputs, Attrs attrs) override {
    std::vector<ValueIndex> outputs;
    Value value;
    value.name = NameFor(op);
    for (size_t i = 0; i < FindOp(op)->outputs; ++i) {
      if (i > 0) value.name = fmt::format("{}.{}", last_name_, i);
      outputs.push_back(graph_.AddValue(value));
    }
    AddPart(op, std::move(inputs), std::move(attrs), outputs);
    return outputs.front();
  }

  void AddOtherOutputs(std::string_view op, std::vector<ValueIndex> inputs, Attrs attrs) override {
    NameFor(op);
    AddPart(op, std::move(inputs), std::move(attrs),
            {current_.outputs.begin() + 1, current_.outputs.end()});
  }

 private:
  // True if its strategy is not possible for the node, but for its parts. Without a strategy
  // samples are cut, if need be by parts.
  Result<bool> HasParts(const Node& node) {
    if (FindOp(node.op)->by_parts == nullptr) return false;
    DT_TRY(const Sharding rule, ShardingOf(old_, node));
    auto strategy = team_.strategies.find(node.name);
    if (strategy == team_.strategies.end()) {
      if (CutsSamples(rule) || !CutsSamples(WithAllCuts(rule))) return false;
      strategy = team_.strategies.emplace(node.name, SamplesOf(WithAllCuts(rule))).first;
    }
    const auto cut = CutOf(rule, strategy->second, team_.devices);
    const auto* problem = std::get_if<CutProblem>(&cut);
    if (problem == nullptr || problem->rule != "whole") return false;
    return std::holds_alternative<NodeCut>(
        CutOf(WithAllCuts(rule), strategy->second, team_.devices));
  }

  static bool IsOfSamples(const ShardLoop& loop) {
    return loop.cut && loop.extent == Dim{kBatch, 1};
  }
  bool CutsSamples(const Sharding& rule) const {
    return team_.devices > 1 && std::ranges::any_of(rule.loops, IsOfSamples);
  }
  Strategy SamplesOf(const Sharding& rule) const {
    std::vector<uint32_t> parts(rule.loops.size(), 1);
    parts[static_cast<size_t>(std::ranges::find_if(rule.loops, IsOfSamples) - rule.loops.begin())] =
        team_.devices;
    return StrategyOf(rule, CutOfParts(rule, parts, team_.devices));
  }

  Status Rewrite(const Node& node) {
    current_ = node;
    names_.clear();
    layouts_.clear();
    DT_TRY(const Sharding narrow, ShardingOf(old_, node));
    const Sharding rule = WithAllCuts(narrow);
    const NodeCut cut =
        std::get<NodeCut>(CutOf(rule, team_.strategies.at(node.name), team_.devices));
    const NodeLayouts layouts = LayoutsOf(rule, cut);
    inputs_ = layouts.inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) layouts_[node.inputs[i]] = layouts.inputs[i];
    team_.strategies.erase(node.name);
    FindOp(node.op)->by_parts(*this);
    DT_TRY_STATUS(error_);
    // The last node takes over the first outputs.
    Node& last = graph_.nodes.back();
    DT_CHECK(last.outputs[0] + last.outputs.size() == graph_.values.size());
    graph_.values.resize(last.outputs[0]);
    last.name = node.name;
    team_.cuts[node.name] = team_.cuts[last_name_];
    team_.cuts.erase(last_name_);
    for (size_t i = 0; i < last.outputs.size(); ++i) {
      last.outputs[i] = node.outputs[i];
      graph_.values[node.outputs[i]].producer = static_cast<NodeIndex>(graph_.nodes.size() - 1);
    }
    return OkStatus();
  }

  // Names the next part, and what it makes.
  const std::string& NameFor(std::string_view op) {
    last_name_ = fmt::format("{}.{}", current_.name, op);
    if (const size_t same = names_[last_name_]++; same > 0) last_name_ += fmt::format(".{}", same);
    return last_name_;
  }

  void AddPart(std::string_view op, std::vector<ValueIndex> inputs, Attrs attrs,
               std::vector<ValueIndex> outputs) {
    Node added = current_;
    added.name = last_name_;
    added.op = op;
    added.attrs = std::move(attrs);
    added.inputs = std::move(inputs);
    added.outputs = std::move(outputs);
    const auto index = static_cast<NodeIndex>(graph_.nodes.size());
    for (const ValueIndex v : added.outputs) graph_.values[v].producer = index;
    graph_.nodes.push_back(std::move(added));
    if (Status status = InferNode(graph_, index); !status.ok() && error_.ok()) error_ = status;
    if (error_.ok()) SetCut(index);
  }

  // Where the part needs all of a dimension, the layout has all of it.
  static Layout AsNeeded(Layout layout, const Sharding& rule, const ShardTensor& tensor) {
    for (size_t d = 0; d < layout.dims.size(); ++d) {
      const auto may_be_cut = [&](LoopIndex loop) { return rule.loops[loop].cut; };
      if (std::ranges::none_of(tensor.axes[d].loops, may_be_cut)) layout.dims[d].clear();
    }
    return layout;
  }

  // Inputs lie as they are known to, but whole dimensions are joined, and outputs as follows from
  // them. Partial sums are added.
  void SetCut(NodeIndex index) {
    const Node& added = graph_.nodes[index];
    const Result<Sharding> rule = ShardingOf(graph_, added);
    DT_CHECK(rule.ok());
    std::vector<Layout> needed;
    for (size_t i = 0; i < added.inputs.size(); ++i) {
      needed.push_back(AsNeeded(layouts_.at(added.inputs[i]), *rule, rule->inputs[i]));
    }
    KnownLayouts known;
    for (const Layout& layout : needed) known.inputs.push_back(&layout);
    auto held = CutOfLayouts(*rule, known);
    if (const auto* problem = std::get_if<CutProblem>(&held)) {
      error_ = Internal("{}: {}", added.name, problem->what);
      return;
    }
    const NodeCut& cut = team_.cuts[added.name] = std::get<HeldCut>(std::move(held)).cut;
    const NodeLayouts layouts = LayoutsOf(*rule, cut);
    for (size_t o = 0; o < added.outputs.size(); ++o) {
      Layout& layout = layouts_[added.outputs[o]] = layouts.outputs[o];
      layout.partial.clear();
    }
  }

  const Graph& old_;
  TeamOptions& team_;
  Graph graph_;
  Status error_;

  // The node being written by parts.
  Node current_;
  std::string last_name_;                 // The name of the node added last.
  std::map<std::string, size_t> names_;   // How many nodes have been given a name.
  std::vector<Layout> inputs_;            // How its inputs lie.
  std::map<ValueIndex, Layout> layouts_;  // How values lie.
};

}  // namespace

Result<Graph> ByParts(const Graph& graph, TeamOptions& team) { return Rewriter(graph, team).Run(); }

}  // namespace dt::scheduler
