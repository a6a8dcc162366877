#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// where(condition, a, b): a where the condition is not 0, else b. The three are right-aligned and
// broadcast. No gradient flows to the condition.
Status InferWhere(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 3));
  DT_TRY(const SymShape values, Broadcast(context, context.in(1).shape, context.in(2).shape));
  DT_TRY(SymShape out, Broadcast(context, context.in(0).shape, values));
  context.outputs = {Output(context.in(1).dtype, std::move(out))};
  return OkStatus();
}

Status WhereGradient(GradientContext& context) {
  const ValueIndex condition = context.node().inputs[0], d = context.output_grad(0);
  if (!context.needs_grad(1) && !context.needs_grad(2)) return OkStatus();
  const ValueIndex zero =
      context.Add("fill", {}, {{"shape", std::vector<int64_t>{1}}, {"value", 0.0}})[0];
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (!context.needs_grad(i)) continue;
    const ValueIndex a = i == 1 ? d : zero, b = i == 1 ? zero : d;
    context.SetInputGrad(i, ReducedTo(context, i, context.Add("where", {condition, a, b}, {})[0]));
  }
  return OkStatus();
}

constexpr OpSpec kSpecs[] = {{.name = "where",
                              .infer = InferWhere,
                              .gradient = WhereGradient,
                              .sharding = {.derive = BroadcastLoops, .linear = ".+"}}};

}  // namespace

std::span<const OpSpec> WhereSpecs() { return kSpecs; }

}  // namespace dt
