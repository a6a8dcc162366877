#include <algorithm>

#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// Checks that the positions of gather or gather_grad are within `size`.
Status CheckIndices(const InferContext& context, int64_t size) {
  const std::vector<int64_t> indices = IntsAttr(context.node.attrs, "indices");
  if (indices.empty()) return Invalid("{}: needs one index or more", context.node.op);
  for (const int64_t index : indices) {
    if (index >= 0 && index < size) continue;
    return Invalid("{}: index {} is not within the {} positions of the axis", context.node.op,
                   index, size);
  }
  return OkStatus();
}

Result<size_t> ConstantAxis(const InferContext& context) {
  const SymShape& shape = context.in(0).shape;
  DT_TRY(const size_t axis, AxisOf(context, IntAttr(context.node.attrs, "axis", -1), shape.size()));
  if (shape[axis].symbol == kConstant) return axis;
  return Invalid("{}: axis {} of {} varies, only constant dimensions are gathered", context.node.op,
                 axis, context.shape_text(0));
}

// gather(x): positions `indices` of `axis` (default the last), in that order; they may repeat.
Status InferGather(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  SymShape out = context.in(0).shape;
  DT_TRY(const size_t axis, ConstantAxis(context));
  DT_TRY_STATUS(CheckIndices(context, out[axis].times));
  out[axis] = Const(std::ssize(IntsAttr(context.node.attrs, "indices")));
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

Status GatherGradient(GradientContext& context) {
  const SymShape& shape = context.graph().value(context.node().inputs[0]).shape;
  Attrs attrs = context.node().attrs;
  const int64_t written = IntAttr(attrs, "axis", -1);
  const auto axis = static_cast<size_t>(written < 0 ? written + std::ssize(shape) : written);
  attrs["size"] = shape[axis].times;
  context.SetInputGrad(0, context.Add("gather_grad", {context.output_grad(0)}, attrs)[0]);
  return OkStatus();
}

// gather_grad(dy): the gradient of x, with `size` positions along `axis`. Gradients of a position
// that is used several times are added in the order of `indices`.
Status InferGatherGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  SymShape out = context.in(0).shape;
  DT_TRY(const size_t axis, ConstantAxis(context));
  const int64_t size = IntAttr(context.node.attrs, "size", 1);
  DT_TRY_STATUS(CheckIndices(context, size));
  if (out[axis].times != std::ssize(IntsAttr(context.node.attrs, "indices"))) {
    return Invalid("gather_grad: axis {} of {} does not have one position for each index", axis,
                   context.shape_text(0));
  }
  out[axis] = Const(size);
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

constexpr AttrSpec kAttrs[] = {{.name = "axis"},
                               {.name = "indices", .type = AttrType::kInts, .required = true}};
constexpr AttrSpec kGradAttrs[] = {{.name = "axis"},
                                   {.name = "indices", .type = AttrType::kInts, .required = true},
                                   {.name = "size", .required = true}};
constexpr OpSpec kSpecs[] = {
    {.name = "gather",
     .infer = InferGather,
     .gradient = GatherGradient,
     .sharding = {.derive = OneAxisLoops, .linear = "&"},
     .attrs = kAttrs},
    {.name = "gather_grad",
     .infer = InferGatherGrad,
     .sharding = {.derive = OneAxisLoops, .linear = "&"},
     .user_visible = false,
     .attrs = kGradAttrs},
};

}  // namespace

std::span<const OpSpec> GatherSpecs() { return kSpecs; }

}  // namespace dt
