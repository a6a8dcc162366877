#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// bias_add(x [.., N], b [N]): [.., N].
Status InferBiasAdd(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  const SymShape& x = context.in(0).shape;
  if (x.empty() || context.in(1).shape != SymShape{x.back()}) {
    return Invalid("bias_add: the bias {} does not fit the last dimension of {}",
                   context.shape_text(1), context.shape_text(0));
  }
  context.outputs = {Output(context.in(0).dtype, x)};
  return OkStatus();
}

Status BiasAddGradient(GradientContext& context) {
  const ValueIndex d = context.output_grad(0);
  if (context.needs_grad(0)) context.SetInputGrad(0, d);
  if (context.needs_grad(1)) context.SetInputGrad(1, context.Add("reduce_batch", {d}, {})[0]);
  return OkStatus();
}

constexpr OpSpec kSpecs[] = {{.name = "bias_add",
                              .infer = InferBiasAdd,
                              .gradient = BiasAddGradient,
                              .sharding = {.loops = "+*n,+n->*n"}}};

}  // namespace

std::span<const OpSpec> BiasSpecs() { return kSpecs; }

}  // namespace dt
