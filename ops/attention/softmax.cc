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

constexpr AttrSpec kAttrs[] = {{.name = "scale", .type = AttrType::kFloat}};
constexpr OpSpec kSpecs[] = {
    {.name = "softmax",
     .infer = InferSoftmax,
     .gradient = SoftmaxGradient,
     .cost = SoftmaxCost,
     .sharding = {.loops = "*N->*N"},
     .attrs = kAttrs},
    {.name = "masked_softmax",
     .infer = InferMaskedSoftmax,
     .gradient = SoftmaxGradient,
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
