#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// reduce_max(x): over the one dimension `axis`; keep_dims leaves a dimension of 1.
Result<SymShape> ReducedShape(const InferContext& context) {
  SymShape shape = context.in(0).shape;
  DT_TRY(const size_t axis, AxisOf(context, IntAttr(context.node.attrs, "axis", -1), shape.size()));
  if (shape[axis].symbol != kConstant) {
    return Invalid("{}: axis {} of {} varies; samples are not mixed in a model", context.node.op,
                   axis, context.shape_text(0));
  }
  if (BoolAttr(context.node.attrs, "keep_dims", false) || shape.size() == 1) {
    shape[axis] = Const(1);
  } else {
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  }
  return shape;
}

Status InferReduceMax(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  DT_TRY(SymShape out, ReducedShape(context));
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

// reduce_max_grad(x, dy): dy at the first of the largest elements, else 0.
Status InferReduceMaxGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  DT_TRY(const SymShape reduced, ReducedShape(context));
  DT_TRY_STATUS(ExpectShape(context, 1, reduced, "the gradient"));
  context.outputs = {Output(context.in(0).dtype, context.in(0).shape)};
  return OkStatus();
}

Status ReduceMaxGradient(GradientContext& context) {
  const ValueIndex x = context.node().inputs[0];
  const Attrs attrs = context.node().attrs;
  context.SetInputGrad(0, context.Add("reduce_max_grad", {x, context.output_grad(0)}, attrs)[0]);
  return OkStatus();
}

constexpr AttrSpec kAttrs[] = {{.name = "axis", .required = true},
                               {.name = "keep_dims", .type = AttrType::kBool}};
constexpr OpSpec kSpecs[] = {
    {.name = "reduce_max", .infer = InferReduceMax, .gradient = ReduceMaxGradient, .attrs = kAttrs},
    {.name = "reduce_max_grad",
     .infer = InferReduceMaxGrad,
     .user_visible = false,
     .attrs = kAttrs},
};

}  // namespace

std::span<const OpSpec> ReduceMaxSpecs() { return kSpecs; }

}  // namespace dt
