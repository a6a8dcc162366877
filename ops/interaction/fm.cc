#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// fm(x [B, fields, dim]): [B, 1], the sum of the dot products of all pairs of fields, as
// ½ Σ_d ((Σ_f x)² - Σ_f x²) (Rendle, "Factorization machines", ICDM 2010, lemma 3.1).
Status InferFm(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  DT_TRY_STATUS(ExpectRank(context, 0, 3, "[B, fields, dim]"));
  context.outputs = {Output(context.in(0).dtype, {context.in(0).shape[0], Const(1)})};
  return OkStatus();
}

// fm_grad(x, dy [B, 1]): dx.
Status InferFmGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  DT_TRY_STATUS(ExpectRank(context, 0, 3, "[B, fields, dim]"));
  DT_TRY_STATUS(ExpectShape(context, 1, {context.in(0).shape[0], Const(1)}, "the gradient"));
  context.outputs = {Output(context.in(0).dtype, context.in(0).shape)};
  return OkStatus();
}

Status FmGradient(GradientContext& context) {
  const ValueIndex x = context.node().inputs[0];
  context.SetInputGrad(0, context.Add("fm_grad", {x, context.output_grad(0)}, {})[0]);
  return OkStatus();
}

constexpr OpSpec kSpecs[] = {
    {.name = "fm", .infer = InferFm, .gradient = FmGradient, .sharding = {.loops = "bFd->b1"}},
    {.name = "fm_grad",
     .infer = InferFmGrad,
     .sharding = {.loops = "bFd,&b1->bFd"},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> FmSpecs() { return kSpecs; }

}  // namespace dt
