// Stores rows between the layers of a perceptron in bf16, if `train.math` is bf16:
//
//   dense_layer, dense_layer_back ─▶ rows ─▶ dense_layer, dense_layer_back, matmul,
//                                            relu_bias_grad (as the layer's result)
//
// Every reader of such rows rounds them for a product or only tests their signs. So results stay
// the same, except that one below 2^-126 becomes zero. Rows are rounded once instead of once for
// each product, and take half as many bytes. On the CPU only.
#include <algorithm>

#include "ops/op_spec.h"
#include "scheduler/composites/infer_node.h"
#include "scheduler/passes/lowering/lowering.h"

namespace dt::scheduler {
namespace {

bool IsBf16(const Node& node) { return TextAttr(node.attrs, "math", "fp32") == "bf16"; }

// Whether `node` returns the same result if its input `i` holds such rows in bf16.
bool TakesRows(const Node& node, size_t i) {
  if (node.device != Device::kCpu) return false;
  const Bf16Traits& bf16 = FindOp(node.op)->bf16;
  return bf16.signs.Has(i) || (bf16.rounded.Has(i) && IsBf16(node));
}

bool GivesRows(const Node& node) {
  return FindOp(node.op)->bf16.result && IsBf16(node) && node.device == Device::kCpu;
}

}  // namespace

// A value that something other than a node refers to keeps its type.
Result<Graph> StoreActivationsInBf16(Graph graph, const PlanRequest&) {
  std::vector<bool> in_bf16(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    if (GivesRows(node)) in_bf16[node.outputs[0]] = true;
  }
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!TakesRows(node, i)) in_bf16[node.inputs[i]] = false;
    }
  }
  const auto keep = [&](ValueIndex v) {
    if (v != kNone) in_bf16[v] = false;
  };
  for (const LossSpec& loss : graph.losses) keep(loss.output), keep(loss.loss);
  for (const ParameterSpec& p : graph.parameters) keep(p.grad), keep(p.pushed);
  for (const TableUse& table : graph.tables) keep(table.row_grad);
  const auto is_in_bf16 = [&](ValueIndex v) { return in_bf16[v]; };
  for (Node& node : graph.nodes) {
    if (GivesRows(node) && in_bf16[node.outputs[0]]) node.attrs["bf16_output"] = true;
    if (node.op == "matmul" && std::ranges::any_of(node.inputs, is_in_bf16)) {
      node.op = "mixed_matmul";
    }
  }
  // Shapes do not change, and types only here.
  for (NodeIndex n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool changed = node.op == "mixed_matmul" || BoolAttr(node.attrs, "bf16_output", false);
    if (changed) DT_TRY_STATUS(InferNode(graph, n));
  }
  return graph;
}

}  // namespace dt::scheduler
