#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// Operators of (a, b), which have equal shapes or are right-aligned and broadcast. Comparisons give
// 1 if they hold, else 0, and have no gradient.
Status InferBinary(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  DT_TRY(SymShape out, Broadcast(context, context.in(0).shape, context.in(1).shape));
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
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

// y = a / b: da = dy / b, db = -y da.
Status DivGradient(GradientContext& context) {
  const std::vector<ValueIndex> inputs = context.node().inputs;
  const ValueIndex y = context.node().outputs[0];
  const ValueIndex share = context.Add("div", {context.output_grad(0), inputs[1]}, {})[0];
  if (context.needs_grad(0)) context.SetInputGrad(0, ReducedTo(context, 0, share));
  if (!context.needs_grad(1)) return OkStatus();
  const ValueIndex product = ReducedTo(context, 1, context.Add("mul", {share, y}, {})[0]);
  context.SetInputGrad(1, context.Add("neg", {product}, {})[0]);
  return OkStatus();
}

// Gradient of maximum and minimum: it goes to the operand that was chosen, and to `a` if both are
// equal.
Status PickGradient(GradientContext& context) {
  const bool is_max = context.node().op == "maximum";
  const std::vector<ValueIndex> inputs = context.node().inputs;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!context.needs_grad(i)) continue;
    const std::string_view picked =
        i == 0 ? (is_max ? "greater_equal" : "less_equal") : (is_max ? "less" : "greater");
    const ValueIndex mask = context.Add(picked, inputs, {})[0];
    const ValueIndex grad = context.Add("mul", {context.output_grad(0), mask}, {})[0];
    context.SetInputGrad(i, ReducedTo(context, i, grad));
  }
  return OkStatus();
}

constexpr OpSpec Binary(std::string_view name, Status (*gradient)(GradientContext&),
                        std::string_view linear = {}) {
  return {.name = name,
          .infer = InferBinary,
          .gradient = gradient,
          .sharding = {.derive = BroadcastLoops, .linear = linear}};
}

constexpr OpSpec kSpecs[] = {
    Binary("add", AddGradient, "+"),  Binary("sub", SubGradient, "+"),
    Binary("mul", MulGradient, "&"),  Binary("div", DivGradient, "&."),
    Binary("maximum", PickGradient),  Binary("minimum", PickGradient),
    Binary("equal", nullptr),         Binary("less", nullptr),
    Binary("less_equal", nullptr),    Binary("greater", nullptr),
    Binary("greater_equal", nullptr),
};

}  // namespace

std::span<const OpSpec> BinarySpecs() { return kSpecs; }

}  // namespace dt
