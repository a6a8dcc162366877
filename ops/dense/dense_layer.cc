#include "ops/dense/product_gradient.h"
#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// Whole layers, as made by the pass `fuse`; they return the same bits as the operators that they
// replace. They have no gradients, because the pass runs on graphs that have them already. Products
// use `math`, as matmul does. On the CPU the pass `bf16_activations` stores rows between layers in
// bf16: with the attribute `bf16_output` a layer returns such rows; x, dz and a layer's result y
// may be such rows.

DType RowsOf(const InferContext& context) {
  const bool bf16_output = BoolAttr(context.node.attrs, "bf16_output", false);
  return bf16_output ? DType::kBf16 : context.in(1).dtype;
}

// dense_layer(x [.., K], weight [K, N], bias [N]): [.., N] = activation(x weight + bias);
// `activation` is none or relu.
Status InferDenseLayer(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 3));
  DT_TRY_STATUS(ExpectMath(context));
  const std::string activation = TextAttr(context.node.attrs, "activation", "none");
  if (activation != "none" && activation != "relu") {
    return Invalid("dense_layer: activation \"{}\" is none of none, relu", activation);
  }
  DT_TRY_STATUS(ExpectRank(context, 1, 2, "[inputs, units]"));
  const SymShape& weight = context.in(1).shape;
  SymShape out = context.in(0).shape;
  if (out.size() < 2 || out.back() != weight[0]) {
    return Invalid("dense_layer: a weight of {} does not fit {}", context.shape_text(1),
                   context.shape_text(0));
  }
  DT_TRY_STATUS(ExpectShape(context, 2, {weight[1]}, "the bias"));
  out.back() = weight[1];
  context.outputs = {Output(RowsOf(context), std::move(out))};
  return OkStatus();
}

// relu_bias_grad(y [.., N], dy [.., N]): dy where y is above 0, else 0; and its sums over all
// dimensions but the last, [N]. With a rate `dropout`, y is what a dropout made of the layer's
// result: gradients that pass are also divided by 1 - rate.
Status InferReluBiasGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectDropout(context));
  DT_TRY_STATUS(ExpectFloats(context, 2));
  const SymShape y = context.in(0).shape;
  if (y.empty()) return Invalid("relu_bias_grad: its input has no dimension");
  DT_TRY_STATUS(ExpectShape(context, 1, y, "the gradient"));
  const DType dtype = context.in(1).dtype;
  context.outputs = {Output(dtype, y), Output(dtype, {y.back()})};
  return OkStatus();
}

// dense_layer_back(dz [.., M], weight [N, M], y [.., N]): relu_bias_grad(y, dz weightᵀ), which
// leads from the gradient of a layer's product to that of the layer before, whose result is y.
Status InferDenseLayerBack(InferContext& context) {
  DT_TRY_STATUS(ExpectDropout(context));
  DT_TRY_STATUS(ExpectFloats(context, 3));
  DT_TRY_STATUS(ExpectMath(context));
  DT_TRY_STATUS(ExpectRank(context, 1, 2, "[inputs, units]"));
  const SymShape& weight = context.in(1).shape;
  SymShape dx = context.in(0).shape;
  if (dx.size() < 2 || dx.back() != weight[1]) {
    return Invalid("dense_layer_back: a weight of {} does not fit {}", context.shape_text(1),
                   context.shape_text(0));
  }
  dx.back() = weight[0];
  DT_TRY_STATUS(ExpectShape(context, 2, dx, "the layer before"));
  context.outputs = {Output(RowsOf(context), dx), Output(context.in(1).dtype, {dx.back()})};
  return OkStatus();
}

// The cost of the product of input 0 and the weight.
OpCost LayerCost(const Graph& graph, const Node& node, int64_t batch) {
  OpCost cost;
  for (const ValueIndex v : node.inputs) cost.bytes += BytesAt(graph.value(v), batch);
  for (const ValueIndex v : node.outputs) cost.bytes += BytesAt(graph.value(v), batch);
  const SymShape& x = graph.value(node.inputs[0]).shape;
  const SymShape& out = graph.value(node.outputs[0]).shape;
  cost.flops = 2 * ElementsAt(x, batch) * ElementsAt({out.back()}, batch);
  return cost;
}

constexpr AttrSpec kMath = {.name = "math", .type = AttrType::kText};
constexpr AttrSpec kBf16Output = {.name = "bf16_output", .type = AttrType::kBool};
constexpr AttrSpec kLayer[] = {{.name = "activation", .type = AttrType::kText}, kMath, kBf16Output};
constexpr AttrSpec kDropout = {.name = "dropout", .type = AttrType::kFloat};
constexpr AttrSpec kBack[] = {kMath, kBf16Output, kDropout};
constexpr AttrSpec kBiasGrad[] = {kDropout};
constexpr OpSpec kSpecs[] = {
    {.name = "dense_layer",
     .infer = InferDenseLayer,
     .cost = LayerCost,
     .sharding = {.loops = "*K,Kn,n->*n"},
     .user_visible = false,
     .takes_bf16 = true,
     .attrs = kLayer,
     .bf16 = {.rounded = {0}, .result = true}},
    {.name = "dense_layer_back",
     .outputs = 2,
     .infer = InferDenseLayerBack,
     .cost = LayerCost,
     .sharding = {.loops = "*M,nM,*n->*n,n"},
     .user_visible = false,
     .takes_bf16 = true,
     .attrs = kBack,
     .bf16 = {.rounded = {0}, .signs = {2}, .result = true}},
    {.name = "relu_bias_grad",
     .outputs = 2,
     .infer = InferReluBiasGrad,
     .sharding = {.loops = "*n,*n->*n,n"},
     .user_visible = false,
     .takes_bf16 = true,
     .attrs = kBiasGrad,
     .bf16 = {.signs = {0}}},
};

}  // namespace

std::span<const OpSpec> DenseLayerSpecs() { return kSpecs; }

}  // namespace dt
