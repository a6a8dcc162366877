#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"
#include "ops/update/attr_specs.h"
#include "ops/update/attrs.h"
#include "ops/update/update.h"

namespace dt {
namespace {

// clip_by_global_norm(g1, …, gn): the gradients, multiplied by clip_norm / (norm + 1e-6) if their
// common norm is above `clip_norm` (0: never); the last output is the norm, [1].
Status InferClipByGlobalNorm(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 1, kNone));
  if (FloatAttr(context.node.attrs, "clip_norm", 0) < 0) {
    return Invalid("clip_by_global_norm: clip_norm is below 0");
  }
  std::vector<Value> outputs;
  for (size_t i = 0; i < context.in_count(); ++i) {
    DT_TRY_STATUS(ExpectFloat(context, i));
    outputs.push_back(Output(context.in(i).dtype, context.in(i).shape));
  }
  outputs.push_back(Output(context.in(0).dtype, {Const(1)}));
  context.outputs = std::move(outputs);
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

constexpr AttrSpec kClip[] = {{.name = "clip_norm", .type = AttrType::kFloat}};
constexpr AttrSpec kL2[] = {{.name = "l2", .type = AttrType::kFloat, .required = true}};
constexpr OpSpec kSpecs[] = {
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
