#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// batch_norm(x [B, C], gamma [C], beta [C], running_mean [C], running_var [C]) gives
//   y [B, C], mean [C], var [C] (biased), inv_std [C], count [1] (samples in the statistics).
// In training it uses the statistics of this slice; in evaluation the running values, with count 0.
// Attributes: `momentum` (0.1: the weight of the new value, as in PyTorch) and `epsilon` (1e-5).
// batch_norm_running updates the running values once per step.
Status InferBatchNorm(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 5));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[B, channels]"));
  const SymShape x = context.in(0).shape;
  const char* const names[] = {"", "gamma", "beta", "running_mean", "running_var"};
  for (size_t i = 1; i < 5; ++i) DT_TRY_STATUS(ExpectShape(context, i, {x[1]}, names[i]));
  if (!(FloatAttr(context.node.attrs, "epsilon", 1e-5) > 0)) {
    return Invalid("batch_norm: epsilon must be above 0");
  }
  const double momentum = FloatAttr(context.node.attrs, "momentum", 0.1);
  if (!(momentum >= 0 && momentum <= 1)) {
    return Invalid("batch_norm: momentum {} is outside [0, 1]", momentum);
  }
  const DType dtype = context.in(0).dtype;
  const Value channel = Output(dtype, {x[1]});
  context.outputs = {Output(dtype, x), channel, channel, channel, Output(dtype, {Const(1)})};
  return OkStatus();
}

Status BatchNormGradient(GradientContext& context) {
  const Node& node = context.node();
  const ValueIndex dy = context.output_grad(0);
  if (dy == kNone) return OkStatus();  // No gradient flows through the statistics.
  const std::vector<ValueIndex> inputs = {dy, node.inputs[0], node.inputs[1], node.outputs[1],
                                          node.outputs[3]};
  const auto grads = context.Add("batch_norm_grad", inputs, {}, 3);
  for (size_t i = 0; i < 3; ++i) {
    if (context.needs_grad(i)) context.SetInputGrad(i, grads[i]);
  }
  return OkStatus();
}

// batch_norm_grad(dy [B, C], x [B, C], gamma, mean, inv_std): dx, dgamma, dbeta.
Status InferBatchNormGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 5));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[B, channels]"));
  const SymShape x = context.in(0).shape;
  DT_TRY_STATUS(ExpectShape(context, 1, x, "x"));
  const char* const names[] = {"", "", "gamma", "mean", "inv_std"};
  for (size_t i = 2; i < 5; ++i) DT_TRY_STATUS(ExpectShape(context, i, {x[1]}, names[i]));
  const DType dtype = context.in(0).dtype;
  context.outputs = {Output(dtype, x), Output(dtype, {x[1]}), Output(dtype, {x[1]})};
  return OkStatus();
}

// batch_norm_running(running_mean [C], running_var [C], means [K, C], vars [K, C], counts [K, 1]):
// no output; merges the statistics of the K slices into the running values, in slice order and in
// place. The variance is made unbiased as in PyTorch, except for a slice of one sample; an empty
// slice is skipped. Attribute `momentum`.
Status InferBatchNormRunning(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 5));
  DT_TRY_STATUS(ExpectRank(context, 2, 2, "[slices, channels]"));
  const SymShape means = context.in(2).shape;
  DT_TRY_STATUS(ExpectShape(context, 0, {means[1]}, "running_mean"));
  DT_TRY_STATUS(ExpectShape(context, 1, {means[1]}, "running_var"));
  DT_TRY_STATUS(ExpectShape(context, 3, means, "the variances"));
  DT_TRY_STATUS(ExpectShape(context, 4, {means[0], Const(1)}, "the counts"));
  context.outputs.clear();
  return OkStatus();
}

constexpr AttrSpec kAttrs[] = {{.name = "momentum", .type = AttrType::kFloat},
                               {.name = "epsilon", .type = AttrType::kFloat}};
constexpr size_t kRunningInputs[] = {3, 4};  // running_mean, running_var.
constexpr size_t kStatistics[] = {1, 2, 4};  // mean, var, count.
constexpr AttrSpec kRunningAttrs[] = {{.name = "momentum", .type = AttrType::kFloat}};
// Users write a composite, which adds the parameters and running values.
constexpr OpSpec kSpecs[] = {
    {.name = "batch_norm",
     .outputs = 5,
     .infer = InferBatchNorm,
     .gradient = BatchNormGradient,
     .sharding = {.loops = "Bc,c,c,c,c->Bc,c,c,c,same 1"},
     .user_visible = false,
     .attrs = kAttrs,
     .running = {.op = "batch_norm_running", .values = kRunningInputs, .statistics = kStatistics}},
    {.name = "batch_norm_grad",
     .outputs = 3,
     .infer = InferBatchNormGrad,
     .sharding = {.loops = "Bc,Bc,c,c,c->Bc,c,c"},
     .user_visible = false},
    {.name = "batch_norm_running",
     .outputs = 0,
     .infer = InferBatchNormRunning,
     .sharding = {.loops = "c,c,Sc,Sc,S1->"},
     .user_visible = false,
     .attrs = kRunningAttrs,
     .traits = {.kind = OpKind::kUpdate, .writes = {0, 1}}},
};

}  // namespace

std::span<const OpSpec> BatchNormSpecs() { return kSpecs; }

}  // namespace dt
