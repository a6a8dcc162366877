// Fuses layers into one node each. Forward, a product with its bias and activation:
//
//   matmul ─▶ bias_add ─▶ relu                    ─▶  dense_layer
//
// Backward, from the gradient of one product to that of the layer before, and to its bias:
//
//   matmul (transposed) ─▶ relu_grad ─▶ reduce_batch  ─▶  dense_layer_back, or
//                          relu_grad ─▶ reduce_batch  ─▶  relu_bias_grad, if another operator makes
//                                                         the input of relu_grad
//
// The new node returns the same bits, and takes position and name of the activation. It saves
// passes over memory.
#include <algorithm>

#include "common/graph/graph_index.h"
#include "ops/op_spec.h"
#include "scheduler/composites/infer_node.h"
#include "scheduler/passes/lowering/lowering.h"

namespace dt::scheduler {
namespace {

class Fuser {
 public:
  // `without_kernel`: operators that `gpu` has no kernel for; no node on `gpu` becomes one of them.
  Fuser(Graph graph, std::span<const std::string> without_kernel)
      : unfused_(std::move(graph)),
        index_(unfused_, TraitsOf),
        graph_(unfused_),
        without_kernel_(without_kernel),
        reported_(graph_.values.size(), false),
        part_of_(graph_.nodes.size(), kNone) {}

  Result<Graph> Run() {
    EachRoot([this](ValueIndex v) {
      if (v != kNone) reported_[v] = true;
    });
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].op == "matmul") Layer(n);
    }
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].op == "relu_grad") Back(n);
    }
    DropParts();
    DropValues();
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      if (IsFused(graph_.nodes[n])) DT_TRY_STATUS(InferNode(graph_, n));
    }
    return std::move(graph_);
  }

 private:
  static bool IsFused(const Node& node) {
    return node.op == "dense_layer" || node.op == "relu_bias_grad" || node.op == "dense_layer_back";
  }

  // Calls f for every value that something other than a node refers to.
  template <class F>
  void EachRoot(const F& f) {
    for (InputSpec& input : graph_.inputs) f(input.value);
    for (ParameterSpec& p : graph_.parameters) {
      f(p.value), f(p.grad), f(p.pushed), f(p.state_of);
    }
    for (ReplicaSpec& replica : graph_.replicas) f(replica.value), f(replica.of);
    for (PartSpec& part : graph_.parts) f(part.value), f(part.of);
    for (TableUse& table : graph_.tables) f(table.rows), f(table.row_grad), f(table.store);
    for (LossSpec& loss : graph_.losses) f(loss.output), f(loss.label), f(loss.loss);
  }

  bool IsBeside(NodeIndex n, std::string_view op, const Node& other) const {
    const Node& node = graph_.nodes[n];
    return node.op == op && node.device == other.device && node.phase == other.phase &&
           node.stage == other.stage;
  }

  // The node `op` that reads the result of `node` as its input 0, if nothing else reads it; else
  // kNone.
  NodeIndex OnlyReader(const Node& node, std::string_view op) const {
    const ValueIndex v = node.outputs[0];
    if (index_.readers(v).size() != 1 || reported_[v]) return kNone;
    const NodeIndex reader = index_.readers(v).front();
    return IsBeside(reader, op, node) && graph_.nodes[reader].inputs[0] == v ? reader : kNone;
  }

  bool MayBe(const Node& node, std::string_view op) const {
    return node.device != Device::kGpu || std::ranges::count(without_kernel_, op) == 0;
  }

  bool IsProduct(const Node& node, bool turned) const {
    return !BoolAttr(node.attrs, "transpose_a", false) &&
           BoolAttr(node.attrs, "transpose_b", false) == turned &&
           graph_.value(node.inputs[1]).shape.size() == 2;
  }

  static Attrs MathOf(const Node& product) {
    Attrs attrs;
    if (const auto math = product.attrs.find("math"); math != product.attrs.end()) {
      attrs.insert(*math);
    }
    return attrs;
  }

  void Layer(NodeIndex index) {
    const Node product = graph_.nodes[index];
    if (!IsProduct(product, false) || !MayBe(product, "dense_layer")) return;
    const NodeIndex add = OnlyReader(product, "bias_add");
    if (add == kNone) return;
    const NodeIndex relu = OnlyReader(graph_.nodes[add], "relu");
    const NodeIndex last = relu == kNone ? add : relu;
    const ValueIndex bias = graph_.nodes[add].inputs[1];
    Node& layer = graph_.nodes[last];
    layer.op = "dense_layer";
    layer.inputs = {product.inputs[0], product.inputs[1], bias};
    layer.attrs = MathOf(product);
    layer.attrs["activation"] = std::string(relu == kNone ? "none" : "relu");
    part_of_[index] = last;
    if (relu != kNone) part_of_[add] = last;
  }

  void Back(NodeIndex index) {
    Node& back = graph_.nodes[index];
    const NodeIndex sum = SumOf(back);
    if (sum == kNone || !MayBe(back, "relu_bias_grad")) return;
    const ValueIndex y = back.inputs[0], dy = back.inputs[1];
    back.op = "relu_bias_grad";
    const NodeIndex from = graph_.value(dy).producer;
    if (from != kNone && IsBeside(from, "matmul", back) && IsProduct(graph_.nodes[from], true) &&
        index_.readers(dy).size() == 1 && !reported_[dy] && MayBe(back, "dense_layer_back")) {
      const Node& product = graph_.nodes[from];
      back.op = "dense_layer_back";
      back.inputs = {product.inputs[0], product.inputs[1], y};
      back.attrs = MathOf(product);
      part_of_[from] = index;
    }
    back.outputs.push_back(graph_.nodes[sum].outputs[0]);
    part_of_[sum] = index;
  }

  // The node that sums the rows of the node's result.
  NodeIndex SumOf(const Node& node) const {
    for (const NodeIndex reader : index_.readers(node.outputs[0])) {
      if (IsBeside(reader, "reduce_batch", node)) return reader;
    }
    return kNone;
  }

  void DropParts() {
    std::vector<NodeIndex> moved(graph_.nodes.size(), kNone);
    NodeIndex count = 0;
    for (size_t n = 0; n < moved.size(); ++n) {
      if (part_of_[n] == kNone) moved[n] = count++;
    }
    std::vector<Node> nodes;
    for (size_t n = 0; n < moved.size(); ++n) {
      if (part_of_[n] != kNone) continue;
      Node& node = nodes.emplace_back(std::move(graph_.nodes[n]));
      if (node.forward == kNone) continue;
      const NodeIndex whole = part_of_[node.forward];
      node.forward = moved[whole == kNone ? node.forward : whole];
    }
    graph_.nodes = std::move(nodes);
  }

  void DropValues() {
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
    EachRoot(move);
  }

  const Graph unfused_;
  const GraphIndex index_;
  Graph graph_;
  const std::span<const std::string> without_kernel_;
  std::vector<bool> reported_;      // Indexed by value: something other than a node refers to it.
  std::vector<NodeIndex> part_of_;  // Indexed by node: the node that it was fused into.
};

}  // namespace

Result<Graph> Fuse(Graph graph, const PlanRequest& request) {
  std::span<const std::string> without_kernel;
  if (request.accelerator) without_kernel = request.accelerator->without_kernel;
  return Fuser(std::move(graph), without_kernel).Run();
}

}  // namespace dt::scheduler
