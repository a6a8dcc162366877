#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// reduce_max(x): over the one dimension `axis`; keep_dims keeps it as 1.
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

// reduce_max_grad(x, dy): dy at the first of the largest elements, 0 elsewhere.
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

// The gradient goes to one element along the axis, so the gradient's axis is not cut.
std::string ReduceMaxLoops(const Graph& graph, const Node& node) {
  const size_t rank = graph.value(node.inputs[0]).shape.size();
  const InferContext context{graph, node, {}};
  const size_t axis = *AxisOf(context, IntAttr(node.attrs, "axis", -1), rank);
  std::vector<bool> whole(rank, false);
  whole[axis] = node.op == "reduce_max_grad";
  const std::string in = AxesText(whole);
  std::string reduced = in;
  if (BoolAttr(node.attrs, "keep_dims", false) || rank == 1) {
    reduced[axis] = '1';
  } else {
    reduced.erase(axis, 1);
  }
  return node.op == "reduce_max" ? in + "->max " + reduced : in + "," + reduced + "->" + in;
}

constexpr AttrSpec kAttrs[] = {{.name = "axis", .required = true},
                               {.name = "keep_dims", .type = AttrType::kBool}};
constexpr OpSpec kSpecs[] = {
    {.name = "reduce_max",
     .infer = InferReduceMax,
     .gradient = ReduceMaxGradient,
     .sharding = {.derive = ReduceMaxLoops},
     .attrs = kAttrs},
    {.name = "reduce_max_grad",
     .infer = InferReduceMaxGrad,
     .sharding = {.derive = ReduceMaxLoops},
     .user_visible = false,
     .attrs = kAttrs},
};

}  // namespace

std::span<const OpSpec> ReduceMaxSpecs() { return kSpecs; }

}  // namespace dt
