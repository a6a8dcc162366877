#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// dot(x [B, fields, dim]): [B, fields (fields - 1) / 2], the dot products of fields i > j, in the
// order (1,0), (2,0), (2,1), (3,0), …: DLRM's interaction.
Result<SymShape> PairsOf(const InferContext& context) {
  DT_TRY_STATUS(ExpectRank(context, 0, 3, "[B, fields, dim]"));
  const SymShape& shape = context.in(0).shape;
  if (shape[1].symbol != kConstant || shape[1].times < 2) {
    return Invalid("dot: needs at least two fields, has {}", context.shape_text(0));
  }
  return SymShape{shape[0], Const(shape[1].times * (shape[1].times - 1) / 2)};
}

Status InferDot(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  DT_TRY(SymShape out, PairsOf(context));
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

// dot_grad(x, dy)
Status InferDotGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  DT_TRY(const SymShape pairs, PairsOf(context));
  DT_TRY_STATUS(ExpectShape(context, 1, pairs, "the gradient"));
  context.outputs = {Output(context.in(0).dtype, context.in(0).shape)};
  return OkStatus();
}

Status DotGradient(GradientContext& context) {
  const ValueIndex x = context.node().inputs[0];
  context.SetInputGrad(0, context.Add("dot_grad", {x, context.output_grad(0)}, {})[0]);
  return OkStatus();
}

OpCost DotCost(const Graph& graph, const Node& node, int64_t batch) {
  const SymShape& x = graph.value(node.inputs[0]).shape;
  const double elements = ElementsAt(x, batch);
  return {.flops = elements * static_cast<double>(x[1].times), .bytes = 8 * elements};
}

constexpr OpSpec kSpecs[] = {
    {.name = "dot", .infer = InferDot, .gradient = DotGradient, .cost = DotCost},
    {.name = "dot_grad", .infer = InferDotGrad, .cost = DotCost, .user_visible = false},
};

}  // namespace

std::span<const OpSpec> DotSpecs() { return kSpecs; }

}  // namespace dt
