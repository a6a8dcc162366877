#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

Status CheckRows(const InferContext& context) {
  const double scale = FloatAttr(context.node.attrs, "scale", 1);
  if (!(scale > 0)) return Invalid("{}: scale {} is not above 0", context.node.op, scale);
  if (!context.in(0).shape.empty()) return OkStatus();
  return Invalid("{}: its input has no dimension", context.node.op);
}

// softmax(x [.., N]): y_i = exp(s x_i) / Σ exp(s x_j) over the last dimension. `scale` is s (1).
Status InferSoftmax(InferContext& context) {
  DT_TRY_STATUS(InferSame(context));
  return CheckRows(context);
}

// masked_softmax(x [.., N], mask): softmax over the elements whose mask is not 0. The others become
// 0, and so does a row without such elements. The mask has the shape of x or is broadcast to it; no
// gradient flows to it.
Status InferMaskedSoftmax(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  DT_TRY_STATUS(CheckRows(context));
  const SymShape& x = context.in(0).shape;
  if (!BroadcastsTo(context.in(1).shape, x)) {
    return Invalid("masked_softmax: a mask of {} cannot be repeated to {}", context.shape_text(1),
                   context.shape_text(0));
  }
  context.outputs = {Output(context.in(0).dtype, x)};
  return OkStatus();
}

// softmax_grad(y, dy): dx.
Status InferSoftmaxGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  return InferAllSame(context);
}

// The gradient of both operators: dx = s y (dy - Σ dy y), which is 0 where y is 0.
Status SoftmaxGradient(GradientContext& context) {
  const Node& node = context.node();
  if (!context.needs_grad(0)) return OkStatus();
  const ValueIndex y = node.outputs[0];
  const Attrs attrs = {{"scale", FloatAttr(node.attrs, "scale", 1)}};
  context.SetInputGrad(0, context.Add("softmax_grad", {y, context.output_grad(0)}, attrs)[0]);
  return OkStatus();
}

OpCost SoftmaxCost(const Graph& graph, const Node& node, int64_t batch) {
  const double elements = ElementsAt(graph.value(node.outputs[0]).shape, batch);
  OpCost cost{.flops = 20 * elements, .bytes = 4 * elements};
  for (const ValueIndex v : node.inputs) cost.bytes += 4 * ElementsAt(graph.value(v).shape, batch);
  return cost;
}

std::string MaskedSoftmaxLoops(const Graph& graph, const Node& node) {
  std::string text = BroadcastLoops(graph, node);
  std::ranges::replace(text, text.back(), '.');
  return text;
}

const Attrs kLastAxis = {{"axis", std::vector<int64_t>{-1}}, {"keep_dims", true}};

// e^(x - largest x), whose sum over the last dimension does not overflow.
ValueIndex Exponentials(PartsContext& context, ValueIndex x) {
  const ValueIndex largest =
      context.Add("reduce_max", {x}, {{"axis", int64_t{-1}}, {"keep_dims", true}});
  // The result does not depend on it, so it needs no gradient.
  const ValueIndex constant = context.Add("stop_gradient", {largest});
  return context.Add("exp", {context.Add("sub", {x, constant})});
}

ValueIndex Scaled(PartsContext& context) {
  const double scale = FloatAttr(context.node().attrs, "scale", 1);
  const ValueIndex x = context.node().inputs[0];
  return scale == 1 ? x : context.Add("scale", {x}, {{"factor", scale}});
}

void SoftmaxByParts(PartsContext& context) {
  const ValueIndex powers = Exponentials(context, Scaled(context));
  context.Add("div", {powers, context.Add("reduce_sum", {powers}, kLastAxis)});
}

// Masked elements count as a number below all others, and their powers as 0.
void MaskedSoftmaxByParts(PartsContext& context) {
  constexpr double kLow = -1e30, kLeastSum = 1e-30;
  const ValueIndex x = Scaled(context), mask = context.node().inputs[1];
  const ValueIndex zeros = context.Add("scale", {x}, {{"factor", 0.0}});
  const ValueIndex low = context.Add("add_const", {zeros}, {{"value", kLow}});
  const ValueIndex all = Exponentials(context, context.Add("where", {mask, x, low}));
  const ValueIndex powers = context.Add("where", {mask, all, zeros});
  const ValueIndex sum = context.Add("reduce_sum", {powers}, kLastAxis);
  context.Add("div", {powers, context.Add("clip", {sum}, {{"min", kLeastSum}})});
}

constexpr AttrSpec kAttrs[] = {{.name = "scale", .type = AttrType::kFloat}};
constexpr OpSpec kSpecs[] = {
    {.name = "softmax",
     .infer = InferSoftmax,
     .gradient = SoftmaxGradient,
     .by_parts = SoftmaxByParts,
     .cost = SoftmaxCost,
     .sharding = {.loops = "*N->*N"},
     .attrs = kAttrs},
    {.name = "masked_softmax",
     .infer = InferMaskedSoftmax,
     .gradient = SoftmaxGradient,
     .by_parts = MaskedSoftmaxByParts,
     .cost = SoftmaxCost,
     .sharding = {.derive = MaskedSoftmaxLoops},
     .attrs = kAttrs},
    {.name = "softmax_grad",
     .infer = InferSoftmaxGrad,
     .sharding = {.loops = "*N,&*N->*N"},
     .user_visible = false,
     .attrs = kAttrs},
};

}  // namespace

std::span<const OpSpec> SoftmaxSpecs() { return kSpecs; }

}  // namespace dt
