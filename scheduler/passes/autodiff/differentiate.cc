// Reverse mode (Griewank and Walther, "Evaluating Derivatives", chapter 3): gradients flow from the
// losses to the values they depend on, in reverse order of the nodes. A value that is used several
// times gets the sum of its gradients.
#include <algorithm>

#include "ops/op_spec.h"
#include "scheduler/composites/infer_node.h"
#include "scheduler/passes/autodiff/autodiff.h"

namespace dt::scheduler {
namespace {

class Differentiator : public GradientContext {
 public:
  Differentiator(Graph graph, const PlanRequest& request)
      : graph_(std::move(graph)), request_(request), forward_nodes_(graph_.nodes.size()) {}

  Result<Graph> Run() {
    MarkNeeded();
    grads_.resize(graph_.values.size());
    DT_TRY_STATUS(SeedLosses());
    for (size_t n = forward_nodes_; n-- > 0;) DT_TRY_STATUS(OneNode(static_cast<NodeIndex>(n)));
    for (TableUse& table : graph_.tables) {
      const ValueIndex rows = table.rows;
      DT_TRY(table.row_grad, Summed(rows));
    }
    for (ParameterSpec& parameter : graph_.parameters) {
      if (!parameter.trained) continue;
      const ValueIndex value = parameter.value;
      DT_TRY(parameter.grad, Summed(value));
    }
    return std::move(graph_);
  }

  // GradientContext for the node in `current_`.
  const Graph& graph() const override { return graph_; }
  const Node& node() const override { return current_; }
  ValueIndex output_grad(size_t i) const override { return output_grads_[i]; }
  bool needs_grad(size_t input) const override { return needed_[current_.inputs[input]]; }
  std::vector<ValueIndex> Add(std::string_view op, std::vector<ValueIndex> inputs, Attrs attrs,
                              size_t outputs) override {
    Node added;
    added.name = current_.name + ".grad";
    if (added_ > 0) added.name += fmt::format(".{}", added_);
    ++added_;
    added.op = op;
    added.inputs = std::move(inputs);
    added.attrs = std::move(attrs);
    added.device = current_.device;
    added.mark = current_.mark;
    added.forward = current_index_;
    return Append(std::move(added), outputs);
  }
  void SetInputGrad(size_t input, ValueIndex grad) override {
    if (needs_grad(input)) grads_[current_.inputs[input]].push_back(grad);
  }

 private:
  // Appends a node. A failing shape rule is kept in error_, and reported after gradient() returns.
  std::vector<ValueIndex> Append(Node node, size_t outputs) {
    const NodeIndex index = graph_.AddNode(std::move(node), outputs);
    if (Status status = InferNode(graph_, index); !status.ok() && error_.ok()) error_ = status;
    return graph_.nodes[index].outputs;
  }

  void MarkNeeded() {
    needed_.assign(graph_.values.size(), false);
    for (const ParameterSpec& p : graph_.parameters) needed_[p.value] = p.trained;
    for (const TableUse& table : graph_.tables) needed_[table.rows] = !IsFrozen(table);
    for (const Node& node : graph_.nodes) {
      if (FindOp(node.op)->gradient == nullptr) continue;
      const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [this](ValueIndex v) { return needed_[v]; });
      for (const ValueIndex v : node.outputs) needed_[v] = any;
    }
  }

  bool IsFrozen(const TableUse& table) const {
    const auto& tables = request_.job.model.tables;
    const auto config = std::ranges::find(tables, table.name, &TableConfig::name);
    return config != tables.end() && config->life.freeze;
  }

  // d(weighted sum of losses) / d(loss) is the loss's weight.
  Status SeedLosses() {
    for (size_t i = 0; i < graph_.losses.size(); ++i) {
      const ValueIndex loss = graph_.losses[i].loss;
      if (!needed_[loss]) continue;
      Node seed;
      seed.name = graph_.value(loss).name + ".seed";
      seed.op = "fill";
      seed.attrs = {{"shape", std::vector<int64_t>{1}}, {"value", double{graph_.losses[i].weight}}};
      seed.forward = graph_.value(loss).producer;
      grads_[loss].push_back(Append(std::move(seed), 1)[0]);
    }
    return error_;
  }

  // The gradient of a value: the sum over its uses, in the order in which they were added.
  Result<ValueIndex> Summed(ValueIndex value) {
    const std::vector<ValueIndex> parts = grads_[value];
    if (parts.empty()) return kNone;
    ValueIndex sum = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) {
      Node add;
      add.name = fmt::format("{}.grad.add", graph_.value(value).name);
      if (i > 1) add.name += fmt::format("{}", i);
      add.op = "add";
      add.inputs = {sum, parts[i]};
      add.forward = graph_.value(value).producer;
      const NodeIndex of = add.forward == kNone ? graph_.value(parts[0]).producer : add.forward;
      add.device = graph_.nodes[of].device;
      sum = Append(std::move(add), 1)[0];
    }
    DT_TRY_STATUS(error_);
    grads_[value] = {sum};
    return sum;
  }

  Status OneNode(NodeIndex index) {
    current_ = graph_.nodes[index];
    current_index_ = index;
    const OpSpec* op = FindOp(current_.op);
    if (op->gradient == nullptr) return OkStatus();
    output_grads_.assign(current_.outputs.size(), kNone);
    bool any = false;
    for (size_t i = 0; i < output_grads_.size(); ++i) {
      if (!needed_[current_.outputs[i]]) continue;
      DT_TRY(output_grads_[i], Summed(current_.outputs[i]));
      any = any || output_grads_[i] != kNone;
    }
    if (!any) return OkStatus();
    added_ = 0;
    const Status status = op->gradient(*this);
    if (!status.ok()) return AboutNode(status, current_.name, current_.mark);
    return error_;
  }

  Graph graph_;
  const PlanRequest& request_;
  const size_t forward_nodes_;
  std::vector<bool> needed_;  // Indexed by value: whether a gradient is needed.
  // Indexed by value of the forward graph: the gradients from its uses.
  std::vector<std::vector<ValueIndex>> grads_;
  Status error_;

  // The node being differentiated. It is a copy, since adding nodes moves the graph's own.
  Node current_;
  NodeIndex current_index_ = kNone;
  std::vector<ValueIndex> output_grads_;
  size_t added_ = 0;
};

}  // namespace

Result<Graph> Differentiate(Graph graph, const PlanRequest& request) {
  return Differentiator(std::move(graph), request).Run();
}

}  // namespace dt::scheduler
