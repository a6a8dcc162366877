#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// layer_norm(x [.., N], gamma [N], beta [N]): each row of N made mean 0 and variance 1 (biased),
// times gamma, plus beta (Ba et al., "Layer normalization", 2016). Attribute `epsilon` (1e-5) is
// added to the variance.
Status CheckRows(const InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 3));
  const SymShape& x = context.in(0).shape;
  if (x.empty() || x.back().symbol != kConstant) {
    return Invalid("{}: the last dimension of {} must be constant", context.node.op,
                   context.shape_text(0));
  }
  DT_TRY_STATUS(ExpectShape(context, 1, {x.back()}, "gamma"));
  if (FloatAttr(context.node.attrs, "epsilon", 1e-5) > 0) return OkStatus();
  return Invalid("{}: epsilon must be above 0", context.node.op);
}

Status InferLayerNorm(InferContext& context) {
  DT_TRY_STATUS(CheckRows(context));
  const SymShape& x = context.in(0).shape;
  DT_TRY_STATUS(ExpectShape(context, 2, {x.back()}, "beta"));
  context.outputs = {Output(context.in(0).dtype, x)};
  return OkStatus();
}

// layer_norm_grad(x [.., N], gamma [N], dy [.., N]): dx, dgamma, dbeta. Mean and variance are
// computed again.
Status InferLayerNormGrad(InferContext& context) {
  DT_TRY_STATUS(CheckRows(context));
  const SymShape& x = context.in(0).shape;
  DT_TRY_STATUS(ExpectShape(context, 2, x, "the gradient"));
  const DType dtype = context.in(0).dtype;
  context.outputs = {Output(dtype, x), Output(dtype, {x.back()}), Output(dtype, {x.back()})};
  return OkStatus();
}

Status LayerNormGradient(GradientContext& context) {
  const Node& node = context.node();
  const Attrs attrs = node.attrs;
  const std::vector<ValueIndex> inputs = {node.inputs[0], node.inputs[1], context.output_grad(0)};
  const auto grads = context.Add("layer_norm_grad", inputs, attrs, 3);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (context.needs_grad(i)) context.SetInputGrad(i, grads[i]);
  }
  return OkStatus();
}

void LayerNormByParts(PartsContext& context) {
  const Node node = context.node();
  const double width =
      static_cast<double>(context.graph().value(node.inputs[0]).shape.back().times);
  const auto mean_of = [&](ValueIndex x) {
    const Attrs last = {{"axis", std::vector<int64_t>{-1}}, {"keep_dims", true}};
    return context.Add("scale", {context.Add("reduce_sum", {x}, last)}, {{"factor", 1 / width}});
  };
  const ValueIndex centred = context.Add("sub", {node.inputs[0], mean_of(node.inputs[0])});
  const ValueIndex variance = mean_of(context.Add("square", {centred}));
  const double epsilon = FloatAttr(node.attrs, "epsilon", 1e-5);
  const ValueIndex deviation =
      context.Add("sqrt", {context.Add("add_const", {variance}, {{"value", epsilon}})});
  const ValueIndex normal = context.Add("div", {centred, deviation});
  context.Add("add", {context.Add("mul", {normal, node.inputs[1]}), node.inputs[2]});
}

constexpr AttrSpec kAttrs[] = {{.name = "epsilon", .type = AttrType::kFloat}};
// Users write a composite, which adds the parameters.
constexpr OpSpec kSpecs[] = {
    {.name = "layer_norm",
     .infer = InferLayerNorm,
     .gradient = LayerNormGradient,
     .by_parts = LayerNormByParts,
     .sharding = {.loops = "*N,N,N->*N"},
     .user_visible = false,
     .attrs = kAttrs},
    {.name = "layer_norm_grad",
     .outputs = 3,
     .infer = InferLayerNormGrad,
     .sharding = {.loops = "*N,N,&*N->*N,N,N"},
     .user_visible = false,
     .attrs = kAttrs},
};

}  // namespace

std::span<const OpSpec> LayerNormSpecs() { return kSpecs; }

}  // namespace dt
