#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// alpha is [N], where N is the last dimension of x, or [1].
Status ExpectAlpha(const InferContext& context, size_t i) {
  const SymShape& x = context.in(0).shape;
  const SymShape& alpha = context.in(i).shape;
  if (!x.empty() && (alpha == SymShape{x.back()} || alpha == SymShape{Const(1)})) return OkStatus();
  return Invalid(
      "{}: alpha must have one value for each of the last dimension of {}, or one, is {}",
      context.node.op, context.shape_text(0), context.shape_text(i));
}

// prelu(x [.., N], alpha [N] or [1]): x where it is above 0, else alpha x. He et al., "Delving Deep
// into Rectifiers" (2015).
Status InferPrelu(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  DT_TRY_STATUS(ExpectAlpha(context, 1));
  context.outputs = {Output(context.in(0).dtype, context.in(0).shape)};
  return OkStatus();
}

// prelu_grad(x, alpha, dy): dx, dalpha.
Status InferPreluGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 3));
  DT_TRY_STATUS(ExpectAlpha(context, 1));
  DT_TRY_STATUS(ExpectShape(context, 2, context.in(0).shape, "the gradient"));
  const DType dtype = context.in(0).dtype;
  context.outputs = {Output(dtype, context.in(0).shape), Output(dtype, context.in(1).shape)};
  return OkStatus();
}

// dice(x [.., N], normal [.., N], alpha [N] or [1]): p x + (1 - p) alpha x with p =
// sigmoid(normal). If `normal` is x after batch normalisation without scale and shift, this is the
// activation of Zhou et al., "Deep Interest Network" (2018).
Status InferDice(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 3));
  DT_TRY_STATUS(ExpectShape(context, 1, context.in(0).shape, "the normalised input"));
  DT_TRY_STATUS(ExpectAlpha(context, 2));
  context.outputs = {Output(context.in(0).dtype, context.in(0).shape)};
  return OkStatus();
}

// dice_grad(x, normal, alpha, dy): dx, dnormal, dalpha.
Status InferDiceGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 4));
  const SymShape x = context.in(0).shape;
  DT_TRY_STATUS(ExpectShape(context, 1, x, "the normalised input"));
  DT_TRY_STATUS(ExpectAlpha(context, 2));
  DT_TRY_STATUS(ExpectShape(context, 3, x, "the gradient"));
  const DType dtype = context.in(0).dtype;
  context.outputs = {Output(dtype, x), Output(dtype, x), Output(dtype, context.in(2).shape)};
  return OkStatus();
}

// `<name>_grad` takes the inputs and the output's gradient, and returns a gradient for each input.
Status AllInputsGradient(GradientContext& context) {
  const std::string op = context.node().op + "_grad";
  std::vector<ValueIndex> inputs = context.node().inputs;
  const size_t count = inputs.size();
  inputs.push_back(context.output_grad(0));
  const std::vector<ValueIndex> grads = context.Add(op, std::move(inputs), {}, count);
  for (size_t i = 0; i < count; ++i) {
    if (context.needs_grad(i)) context.SetInputGrad(i, grads[i]);
  }
  return OkStatus();
}

constexpr OpSpec kSpecs[] = {
    {.name = "prelu",
     .infer = InferPrelu,
     .gradient = AllInputsGradient,
     .sharding = {.derive = BroadcastLoops},
     .user_visible = false},
    {.name = "prelu_grad",
     .outputs = 2,
     .infer = InferPreluGrad,
     .sharding = {.derive = BroadcastLoops},
     .user_visible = false},
    {.name = "dice",
     .infer = InferDice,
     .gradient = AllInputsGradient,
     .sharding = {.derive = BroadcastLoops},
     .user_visible = false},
    {.name = "dice_grad",
     .outputs = 3,
     .infer = InferDiceGrad,
     .sharding = {.derive = BroadcastLoops},
     .user_visible = false},
};

}  // namespace

// Users write composites of the same names, which add the parameters.
std::span<const OpSpec> PreluSpecs() { return kSpecs; }

}  // namespace dt
