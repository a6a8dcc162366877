#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"
#include "ops/update/attr_specs.h"
#include "ops/update/attrs.h"
#include "ops/update/update.h"

namespace dt {
namespace {

// row_norms(x [n, …]): [n], the root of the sum of squares of each position of dimension 0. Whoever
// has which rows, and of whatever parts of a team the norms of rows come, the sums are the same.
Status InferRowNorms(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  if (context.in(0).shape.empty()) return Invalid("row_norms: its input has no dimension");
  context.outputs = {Output(context.in(0).dtype, {context.in(0).shape[0]})};
  return OkStatus();
}

// joint_norms(r1 [n1], …, rk [nk]): [k], the norm of each input.
Status InferJointNorms(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 1, kNone));
  for (size_t i = 0; i < context.in_count(); ++i) DT_TRY_STATUS(ExpectFloat(context, i));
  context.outputs = {
      Output(context.in(0).dtype, {Const(static_cast<int64_t>(context.in_count()))})};
  return OkStatus();
}

// clip_by_global_norm(g1, …, gn, r1, …): the first `grads` inputs, gradients, multiplied by
// clip_norm / (norm + 1e-6) if the common norm of the others, which are norms of parts of the
// gradients, is above `clip_norm` (0: never).
Status InferClipByGlobalNorm(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2, kNone));
  if (FloatAttr(context.node.attrs, "clip_norm", 0) < 0) {
    return Invalid("clip_by_global_norm: clip_norm is below 0");
  }
  const int64_t grads = IntAttr(context.node.attrs, "grads", 0);
  if (grads < 1 || grads >= std::ssize(context.node.inputs)) {
    return Invalid("clip_by_global_norm: {} of {} inputs are gradients", grads, context.in_count());
  }
  context.outputs.clear();
  for (size_t i = 0; i < context.in_count(); ++i) {
    DT_TRY_STATUS(ExpectFloat(context, i));
    if (static_cast<int64_t>(i) >= grads) continue;
    context.outputs.push_back(Output(context.in(i).dtype, context.in(i).shape));
  }
  return OkStatus();
}

// add_l2(grad, param): grad + l2 · param.
Status InferAddL2(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  return InferAllSame(context);
}

// update(param, grad, state…): no output; writes param and the states in place. Its attributes are
// those of OptimizerAttrs.
Status InferUpdate(InferContext& context) {
  const OptimizerSpec spec = OptimizerFromAttrs(context.node.attrs);
  const OptimizerInfo& optimizer = InfoOf(spec.kind);
  if (IsForTablesOnly(optimizer)) {
    return Invalid("update: {} is for tables; use {} for dense parameters", optimizer.name,
                   NameOf(ForDense(optimizer)));
  }
  DT_TRY_STATUS(ExpectInputs(context, 2 + DenseStates(spec)));
  DT_TRY_STATUS(InferAllSame(context));
  context.outputs.clear();
  return OkStatus();
}

constexpr AttrSpec kClip[] = {{.name = "clip_norm", .type = AttrType::kFloat},
                              {.name = "grads", .required = true}};
constexpr AttrSpec kL2[] = {{.name = "l2", .type = AttrType::kFloat, .required = true}};
constexpr OpSpec kSpecs[] = {
    {.name = "row_norms",
     .infer = InferRowNorms,
     .sharding = {.derive = UncutLoops},
     .user_visible = false},
    {.name = "joint_norms",
     .infer = InferJointNorms,
     .sharding = {.derive = UncutLoops},
     .user_visible = false},
    {.name = "clip_by_global_norm",
     .outputs = kVariableOutputs,
     .infer = InferClipByGlobalNorm,
     .sharding = {.derive = UncutLoops},
     .user_visible = false,
     .attrs = kClip},
    {.name = "add_l2",
     .infer = InferAddL2,
     .sharding = {.derive = BroadcastLoops},
     .user_visible = false,
     .attrs = kL2},
    {.name = "update",
     .outputs = 0,
     .infer = InferUpdate,
     .sharding = {.derive = BroadcastLoops},
     .user_visible = false,
     .attrs = kOptimizerAttrs,
     .traits = {.kind = OpKind::kUpdate, .writes = InputSet::AllBut(1)}},
};

}  // namespace

std::span<const OpSpec> StepSpecs() { return kSpecs; }

}  // namespace dt
