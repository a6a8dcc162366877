// Fuses layers into one node each. Forward, a product with its bias and activation, a normalisation
// with the activation and dropout after it, and dot products with the concatenation after them:
//
//   matmul ─▶ bias_add ─▶ relu                    ─▶  dense_layer
//   batch_norm ─▶ relu ─▶ dropout                 ─▶  norm_layer
//   dot ─▶ concat                                 ─▶  concat_dot
//
// Backward, from the gradient of one product to that of the layer before, and to its bias:
//
//   matmul (transposed) ─▶ relu_grad ─▶ reduce_batch  ─▶  dense_layer_back, or
//                          relu_grad ─▶ reduce_batch  ─▶  relu_bias_grad, if another operator makes
//                                                         the input of relu_grad
//   relu_grad ─▶ batch_norm_grad ─▶ reduce_batch  ─▶  norm_layer_back
//   slice ─▶ dot_grad                             ─▶  concat_dot_grad
//
// A dropout after a ReLU needs no mask on the way back: where its result is above 0, the element
// passed both. So before all this,
//
//   dropout_grad ─▶ relu_grad (result of the ReLU)  ─▶  relu_grad (result of the dropout)
//
// The new node returns the same bits, but for the sign of a gradient of zero that a dropout made,
// and takes position and name of the last one. It saves passes over memory.
#include <algorithm>

#include "scheduler/passes/lowering/graph_fuser.h"
#include "scheduler/passes/lowering/lowering.h"

namespace dt::scheduler {
namespace {

// ------------------------------------------------------------ dropout

// The relu_grad of the node that made the dropout's input, if the dropout's gradient is all that
// reaches it; else kNone.
NodeIndex ReluGradThrough(const GraphFuser& fuser, NodeIndex dropout) {
  const Node& node = fuser.node(dropout);
  const ValueIndex y = node.inputs[0];
  if (fuser.IsReported(y) || fuser.readers(y).size() != 2) return kNone;
  for (const NodeIndex reader : fuser.readers(y)) {
    const Node& grad = fuser.node(reader);
    if (grad.op != "relu_grad" || grad.inputs[0] != y) continue;
    const NodeIndex masked = fuser.OnlyMaker(reader, 1, "dropout_grad");
    if (masked == kNone || grad.device != node.device) return kNone;
    const Attrs& attrs = fuser.node(masked).attrs;
    return TextAttr(attrs, "mask_of", "") == node.name ? reader : kNone;
  }
  return kNone;
}

void PassDropout(GraphFuser& fuser, NodeIndex dropout) {
  const Node& node = fuser.node(dropout);
  if (!IntsAttr(node.attrs, "first").empty()) return;
  const NodeIndex index = ReluGradThrough(fuser, dropout);
  if (index == kNone) return;
  Node& grad = fuser.node(index);
  const NodeIndex masked = fuser.producer(grad.inputs[1]);
  grad.inputs = {node.outputs[0], fuser.node(masked).inputs[0]};
  grad.attrs["dropout"] = FloatAttr(node.attrs, "rate", 0.5);
  fuser.Join(masked, index);
}

// The attributes of a node that does the work of this relu_grad, too.
Attrs DropoutOf(const Node& relu_grad) {
  Attrs attrs;
  if (const auto rate = relu_grad.attrs.find("dropout"); rate != relu_grad.attrs.end()) {
    attrs.insert(*rate);
  }
  return attrs;
}

// ------------------------------------------------------------ products

bool IsProduct(const GraphFuser& fuser, const Node& node, bool turned) {
  return !BoolAttr(node.attrs, "transpose_a", false) &&
         BoolAttr(node.attrs, "transpose_b", false) == turned &&
         fuser.graph().value(node.inputs[1]).shape.size() == 2;
}

Attrs MathOf(const Node& product) {
  Attrs attrs;
  if (const auto math = product.attrs.find("math"); math != product.attrs.end()) {
    attrs.insert(*math);
  }
  return attrs;
}

void FuseLayer(GraphFuser& fuser, NodeIndex index) {
  const Node product = fuser.node(index);
  if (!IsProduct(fuser, product, false) || !fuser.MayBe(product, "dense_layer")) return;
  const NodeIndex add = fuser.OnlyReader(product, "bias_add");
  if (add == kNone) return;
  const NodeIndex relu = fuser.OnlyReader(fuser.node(add), "relu");
  const NodeIndex last = relu == kNone ? add : relu;
  const ValueIndex bias = fuser.node(add).inputs[1];
  Node& layer = fuser.node(last);
  layer.op = "dense_layer";
  layer.inputs = {product.inputs[0], product.inputs[1], bias};
  layer.attrs = MathOf(product);
  layer.attrs["activation"] = std::string(relu == kNone ? "none" : "relu");
  fuser.Join(index, last);
  if (relu != kNone) fuser.Join(add, last);
}

// The node that sums the rows of the node's result.
NodeIndex SumOf(const GraphFuser& fuser, const Node& node) {
  for (const NodeIndex reader : fuser.readers(node.outputs[0])) {
    if (fuser.IsBeside(reader, "reduce_batch", node)) return reader;
  }
  return kNone;
}

void FuseLayerBack(GraphFuser& fuser, NodeIndex index) {
  Node& back = fuser.node(index);
  const NodeIndex sum = SumOf(fuser, back);
  if (sum == kNone || !fuser.MayBe(back, "relu_bias_grad")) return;
  const ValueIndex y = back.inputs[0];
  const NodeIndex from = fuser.OnlyMaker(index, 1, "matmul");
  const Attrs dropout = DropoutOf(back);
  back.op = "relu_bias_grad";
  if (from != kNone && IsProduct(fuser, fuser.node(from), true) &&
      fuser.MayBe(back, "dense_layer_back")) {
    const Node& product = fuser.node(from);
    back.op = "dense_layer_back";
    back.inputs = {product.inputs[0], product.inputs[1], y};
    back.attrs = MathOf(product);
    back.attrs.insert(dropout.begin(), dropout.end());
    fuser.Join(from, index);
  }
  back.outputs.push_back(fuser.node(sum).outputs[0]);
  fuser.Join(sum, index);
}

// ------------------------------------------------------------ normalisations

// Whether the statistics of `norm` may be made where `last` is.
bool AreReadAfter(const GraphFuser& fuser, const Node& norm, NodeIndex last) {
  for (size_t i = 1; i < norm.outputs.size(); ++i) {
    const auto readers = fuser.readers(norm.outputs[i]);
    if (!readers.empty() && readers.front() < last) return false;
  }
  return true;
}

void FuseNorm(GraphFuser& fuser, NodeIndex index) {
  const Node norm = fuser.node(index);
  const NodeIndex relu = fuser.OnlyReader(norm, "relu");
  if (relu == kNone || !fuser.MayBe(norm, "norm_layer")) return;
  const NodeIndex dropout = fuser.OnlyReader(fuser.node(relu), "dropout");
  const bool drops = dropout != kNone && IntsAttr(fuser.node(dropout).attrs, "first").empty();
  const NodeIndex last = drops ? dropout : relu;
  if (!AreReadAfter(fuser, norm, last)) return;
  Attrs attrs = norm.attrs;
  if (drops) {
    attrs["dropout"] = FloatAttr(fuser.node(dropout).attrs, "rate", 0.5);
    fuser.Join(relu, last);
  }
  Node& layer = fuser.node(last);
  layer.op = "norm_layer";
  layer.inputs = norm.inputs;
  layer.outputs.insert(layer.outputs.end(), norm.outputs.begin() + 1, norm.outputs.end());
  layer.attrs = std::move(attrs);
  fuser.Join(index, last);
}

void FuseNormBack(GraphFuser& fuser, NodeIndex index) {
  Node& back = fuser.node(index);
  const NodeIndex relu = fuser.OnlyMaker(index, 0, "relu_grad");
  const NodeIndex sum = SumOf(fuser, back);
  if (relu == kNone || sum == kNone || !fuser.MayBe(back, "norm_layer_back")) return;
  const Node& from = fuser.node(relu);
  back.op = "norm_layer_back";
  back.inputs[0] = from.inputs[1];
  back.inputs.push_back(from.inputs[0]);
  back.attrs = DropoutOf(from);
  back.outputs.push_back(fuser.node(sum).outputs[0]);
  fuser.Join(relu, index);
  fuser.Join(sum, index);
}

// ------------------------------------------------------------ dot products

// Whether the node joins two matrices, or cuts one, along their columns.
bool IsAlongColumns(const GraphFuser& fuser, const Node& node) {
  const int64_t axis = IntAttr(node.attrs, "axis", -1);
  return (axis == 1 || axis == -1) && fuser.graph().value(node.outputs[0]).shape.size() == 2;
}

void FuseDot(GraphFuser& fuser, NodeIndex index) {
  Node& concat = fuser.node(index);
  if (concat.inputs.size() != 2 || !IsAlongColumns(fuser, concat)) return;
  const NodeIndex dot = fuser.OnlyMaker(index, 1, "dot");
  if (dot == kNone || !fuser.MayBe(concat, "concat_dot")) return;
  const ValueIndex before = concat.inputs[0];
  concat.op = "concat_dot";
  concat.inputs = fuser.node(dot).inputs;
  concat.inputs.push_back(before);
  concat.attrs.clear();
  fuser.Join(dot, index);
}

void FuseDotBack(GraphFuser& fuser, NodeIndex index) {
  Node& grad = fuser.node(index);
  const NodeIndex slice = fuser.OnlyMaker(index, grad.inputs.size() - 1, "slice");
  if (slice == kNone || !fuser.MayBe(grad, "concat_dot_grad")) return;
  const Node& cut = fuser.node(slice);
  const int64_t width = fuser.graph().value(cut.inputs[0]).shape.back().times;
  if (!IsAlongColumns(fuser, cut) || IntAttr(cut.attrs, "end", width) != width) return;
  grad.op = "concat_dot_grad";
  grad.inputs.back() = cut.inputs[0];
  fuser.Join(slice, index);
}

// Calls fuse(fuser, n) for each node `op`.
template <class F>
void Each(GraphFuser& fuser, std::string_view op, const F& fuse) {
  for (NodeIndex n = 0; n < fuser.size(); ++n) {
    if (fuser.node(n).op == op) fuse(fuser, n);
  }
}

}  // namespace

Result<Graph> Fuse(Graph graph, const PlanRequest& request) {
  std::span<const std::string> without_kernel;
  if (request.accelerator) without_kernel = request.accelerator->without_kernel;
  GraphFuser dropouts(std::move(graph), without_kernel);
  Each(dropouts, "dropout", PassDropout);
  DT_TRY(graph, std::move(dropouts).Finish());
  GraphFuser fuser(std::move(graph), without_kernel);
  Each(fuser, "matmul", FuseLayer);
  Each(fuser, "relu_grad", FuseLayerBack);
  Each(fuser, "batch_norm", FuseNorm);
  Each(fuser, "batch_norm_grad", FuseNormBack);
  Each(fuser, "concat", FuseDot);
  Each(fuser, "dot_grad", FuseDotBack);
  return std::move(fuser).Finish();
}

}  // namespace dt::scheduler
