#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// cross_layer(x0 [B, D], x [B, D], w [D, 1], b [D]): x0 (x·w) + b + x (Wang et al., "Deep & cross
// network", ADKDD 2017).
Status CheckShapes(const InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 4));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[B, dim]"));
  const SymShape x0 = context.in(0).shape;
  DT_TRY_STATUS(ExpectShape(context, 1, x0, "x"));
  return ExpectShape(context, 2, {x0[1], Const(1)}, "w");
}

Status InferCrossLayer(InferContext& context) {
  DT_TRY_STATUS(CheckShapes(context));
  const SymShape x0 = context.in(0).shape;
  DT_TRY_STATUS(ExpectShape(context, 3, {x0[1]}, "b"));
  context.outputs = {Output(context.in(0).dtype, x0)};
  return OkStatus();
}

// cross_layer_grad(x0, x, w, dy): dx0, dx, dw, db.
Status InferCrossLayerGrad(InferContext& context) {
  DT_TRY_STATUS(CheckShapes(context));
  const SymShape x0 = context.in(0).shape;
  DT_TRY_STATUS(ExpectShape(context, 3, x0, "the gradient"));
  const DType dtype = context.in(0).dtype;
  context.outputs = {Output(dtype, x0), Output(dtype, x0), Output(dtype, {x0[1], Const(1)}),
                     Output(dtype, {x0[1]})};
  return OkStatus();
}

Status CrossLayerGradient(GradientContext& context) {
  std::vector<ValueIndex> inputs = context.node().inputs;
  inputs[3] = context.output_grad(0);
  const auto grads = context.Add("cross_layer_grad", std::move(inputs), {}, 4);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (context.needs_grad(i)) context.SetInputGrad(i, grads[i]);
  }
  return OkStatus();
}

void CrossLayerByParts(PartsContext& context) {
  const std::vector<ValueIndex> in = context.node().inputs;
  const ValueIndex product = context.Add("matmul", {in[1], in[2]});
  const ValueIndex crossed = context.Add("mul", {in[0], product});
  context.Add("add", {context.Add("add", {crossed, in[3]}), in[1]});
}

constexpr OpSpec kSpecs[] = {
    {.name = "cross_layer",
     .infer = InferCrossLayer,
     .gradient = CrossLayerGradient,
     .by_parts = CrossLayerByParts,
     .sharding = {.loops = "bD,bD,D1,D->bD"},
     .user_visible = false},
    {.name = "cross_layer_grad",
     .outputs = 4,
     .infer = InferCrossLayerGrad,
     .sharding = {.loops = "bD,bD,D1,bD->bD,bD,D1,D"},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> CrossLayerSpecs() { return kSpecs; }

}  // namespace dt
