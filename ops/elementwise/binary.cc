#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// add, sub, mul (a, b): equal shapes, or right-aligned with dimensions of 1 repeated.
Status InferBinary(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  DT_TRY(SymShape out, Broadcast(context, context.in(0).shape, context.in(1).shape));
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

// Sums `grad` over the dimensions along which input `i` was repeated.
ValueIndex ReducedTo(GradientContext& context, size_t i, ValueIndex grad) {
  const Graph& graph = context.graph();
  const ValueIndex input = context.node().inputs[i];
  if (graph.value(input).shape == graph.value(grad).shape) return grad;
  return context.Add("reduce_to", {grad, input}, {})[0];
}

Status AddGradient(GradientContext& context) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!context.needs_grad(i)) continue;
    context.SetInputGrad(i, ReducedTo(context, i, context.output_grad(0)));
  }
  return OkStatus();
}

Status SubGradient(GradientContext& context) {
  const ValueIndex d = context.output_grad(0);
  if (context.needs_grad(0)) context.SetInputGrad(0, ReducedTo(context, 0, d));
  if (context.needs_grad(1)) {
    context.SetInputGrad(1, context.Add("neg", {ReducedTo(context, 1, d)}, {})[0]);
  }
  return OkStatus();
}

Status MulGradient(GradientContext& context) {
  const ValueIndex d = context.output_grad(0);
  const std::vector<ValueIndex> inputs = context.node().inputs;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!context.needs_grad(i)) continue;
    const ValueIndex scaled = context.Add("mul", {d, inputs[1 - i]}, {})[0];
    context.SetInputGrad(i, ReducedTo(context, i, scaled));
  }
  return OkStatus();
}

constexpr OpSpec Binary(std::string_view name, Status (*gradient)(GradientContext&)) {
  return {.name = name,
          .infer = InferBinary,
          .gradient = gradient,
          .sharding = ShardingRule::kElementwise};
}

constexpr OpSpec kSpecs[] = {
    Binary("add", AddGradient),
    Binary("sub", SubGradient),
    Binary("mul", MulGradient),
};

}  // namespace

std::span<const OpSpec> BinarySpecs() { return kSpecs; }

}  // namespace dt
