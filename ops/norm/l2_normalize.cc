#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// l2_normalize(x [.., N]): each row divided by its length, or by `epsilon` (1e-12) if the length is
// smaller.
Status CheckRows(const InferContext& context) {
  if (context.in(0).shape.empty()) {
    return Invalid("{}: its input has no dimension", context.node.op);
  }
  if (FloatAttr(context.node.attrs, "epsilon", 1e-12) > 0) return OkStatus();
  return Invalid("{}: epsilon must be above 0", context.node.op);
}

Status InferL2Normalize(InferContext& context) {
  DT_TRY_STATUS(InferSame(context));
  return CheckRows(context);
}

// l2_normalize_grad(x, dy): dx.
Status InferL2NormalizeGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(InferAllSame(context));
  return CheckRows(context);
}

Status L2NormalizeGradient(GradientContext& context) {
  const ValueIndex x = context.node().inputs[0];
  const Attrs attrs = context.node().attrs;
  context.SetInputGrad(0, context.Add("l2_normalize_grad", {x, context.output_grad(0)}, attrs)[0]);
  return OkStatus();
}

// The square of the length is limited, so that its root has a gradient.
void L2NormalizeByParts(PartsContext& context) {
  const double least = FloatAttr(context.node().attrs, "epsilon", 1e-12);
  const ValueIndex x = context.node().inputs[0];
  const ValueIndex sum = context.Add("reduce_sum", {context.Add("square", {x})},
                                     {{"axis", std::vector<int64_t>{-1}}, {"keep_dims", true}});
  const ValueIndex limited = context.Add("clip", {sum}, {{"min", least * least}});
  context.Add("div", {x, context.Add("sqrt", {limited})});
}

constexpr AttrSpec kAttrs[] = {{.name = "epsilon", .type = AttrType::kFloat}};
constexpr OpSpec kSpecs[] = {
    {.name = "l2_normalize",
     .infer = InferL2Normalize,
     .gradient = L2NormalizeGradient,
     .by_parts = L2NormalizeByParts,
     .sharding = {.loops = "*N->*N"},
     .attrs = kAttrs},
    {.name = "l2_normalize_grad",
     .infer = InferL2NormalizeGrad,
     .sharding = {.loops = "*N,&*N->*N"},
     .user_visible = false,
     .attrs = kAttrs},
};

}  // namespace

std::span<const OpSpec> L2NormalizeSpecs() { return kSpecs; }

}  // namespace dt
