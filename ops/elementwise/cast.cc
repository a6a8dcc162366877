#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// cast(x): the attribute `to` is "fp32" or "bf16". For f64, which only tests have, "fp32" means
// f64.
Status InferCast(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  const std::string to = TextAttr(context.node.attrs, "to", "");
  if (to != "fp32" && to != "bf16") {
    return Invalid("cast: to is \"{}\"; allowed: fp32, bf16", to);
  }
  const Value& in = context.in(0);
  const DType wide = in.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  context.outputs = {Output(to == "bf16" ? DType::kBf16 : wide, in.shape)};
  return OkStatus();
}

// The gradient has the input's type; rounding is treated as the identity.
Status CastGradient(GradientContext& context) {
  const bool narrow = context.graph().value(context.node().inputs[0]).dtype == DType::kBf16;
  const Attrs attrs = {{"to", std::string(narrow ? "bf16" : "fp32")}};
  context.SetInputGrad(0, context.Add("cast", {context.output_grad(0)}, attrs)[0]);
  return OkStatus();
}

constexpr AttrSpec kTo[] = {{.name = "to", .type = AttrType::kText, .required = true}};

constexpr OpSpec kSpecs[] = {
    {.name = "cast",
     .infer = InferCast,
     .gradient = CastGradient,
     .sharding = {.derive = BroadcastLoops},
     .takes_bf16 = true,
     .attrs = kTo},
};

}  // namespace

std::span<const OpSpec> CastSpecs() { return kSpecs; }

}  // namespace dt
