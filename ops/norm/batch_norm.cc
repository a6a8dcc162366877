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

// ------------------------------------------------------------ whole layers

// Made by the pass `fuse`, as dense_layer is: see ops/dense/dense_layer.cc.
//
// norm_layer: as batch_norm, but y goes through a ReLU and then, in training, through a dropout of
// rate `dropout` (0), whose mask is that of a dropout node with this node's name.
Status InferNormLayer(InferContext& context) {
  DT_TRY_STATUS(ExpectDropout(context));
  return InferBatchNorm(context);
}

// norm_layer_back(dy [B, C], x [B, C], gamma, mean, inv_std, y [B, C]): dx, dgamma, dbeta, and the
// sums of dx over the samples [C]. y is output 0 of norm_layer, and dy its gradient.
Status InferNormLayerBack(InferContext& context) {
  DT_TRY_STATUS(ExpectDropout(context));
  DT_TRY_STATUS(ExpectFloats(context, 6));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[B, channels]"));
  const SymShape x = context.in(0).shape;
  DT_TRY_STATUS(ExpectShape(context, 1, x, "x"));
  DT_TRY_STATUS(ExpectShape(context, 5, x, "y"));
  const char* const names[] = {"", "", "gamma", "mean", "inv_std"};
  for (size_t i = 2; i < 5; ++i) DT_TRY_STATUS(ExpectShape(context, i, {x[1]}, names[i]));
  const DType dtype = context.in(0).dtype;
  const Value channel = Output(dtype, {x[1]});
  context.outputs = {Output(dtype, x), channel, channel, channel};
  return OkStatus();
}

// ------------------------------------------------------------ running values

// batch_norm_running(running_mean [C], running_var [C], means [K, C], vars [K, C], counts [K, 1]
// or [K, C]):
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
  if (context.in(4).shape != means) {
    DT_TRY_STATUS(ExpectShape(context, 4, {means[0], Const(1)}, "the counts"));
  }
  context.outputs.clear();
  return OkStatus();
}

// ------------------------------------------------------------------ by parts

// in_training(x, y): x in training, y in evaluation; gradients are those of training.
Status InferInTraining(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  return InferAllSame(context);
}
Status InTrainingGradient(GradientContext& context) {
  if (context.needs_grad(0)) context.SetInputGrad(0, context.output_grad(0));
  return OkStatus();
}

// batch_norm_statistics(running_mean, running_var, mean, var, deviation, count, all [C]): the
// outputs of batch_norm after the first one, for batch_norm_running, but the count for each
// channel: devices that have no channel have no count. No gradient flows through.
Status InferStatistics(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 6));
  DT_TRY_STATUS(ExpectRank(context, 0, 1, "[channels]"));
  const Value& channels = context.in(0);
  for (size_t i = 1; i < 6; ++i) {
    DT_TRY_STATUS(ExpectShape(context, i, channels.shape, "every input"));
  }
  const Value channel = Output(channels.dtype, channels.shape);
  context.outputs = {channel, channel, channel, channel};
  return OkStatus();
}

// Statistics of samples that several devices have: two sums, as LayerNorm by parts has. The mean of
// training is also that of the variance.
void BatchNormByParts(PartsContext& context) {
  const Node node = context.node();
  const ValueIndex x = node.inputs[0], gamma = node.inputs[1], beta = node.inputs[2];
  const ValueIndex running_mean = node.inputs[3], running_var = node.inputs[4];
  const ValueIndex count = context.Add("batch_count", {x});
  const ValueIndex mean = context.Add("div", {context.Add("reduce_batch", {x}), count});
  const ValueIndex centred =
      context.Add("sub", {x, context.Add("in_training", {mean, running_mean})});
  const ValueIndex squares = context.Add("reduce_batch", {context.Add("square", {centred})});
  const ValueIndex var = context.Add("div", {squares, count});
  const double epsilon = FloatAttr(node.attrs, "epsilon", 1e-5);
  const ValueIndex above = context.Add(
      "add_const", {context.Add("in_training", {var, running_var})}, {{"value", epsilon}});
  const ValueIndex deviation = context.Add("sqrt", {above});
  context.AddOtherOutputs("batch_norm_statistics",
                          {running_mean, running_var, mean, var, deviation, count}, node.attrs);
  const ValueIndex normal = context.Add("div", {centred, deviation});
  context.Add("add", {context.Add("mul", {normal, gamma}), beta});
}

std::string RunningLoops(const Graph& graph, const Node& node) {
  const bool one = graph.value(node.inputs[4]).shape != graph.value(node.inputs[2]).shape;
  return one ? "c,c,Sc,Sc,S1->" : "c,c,Sc,Sc,Sc->";
}

constexpr AttrSpec kAttrs[] = {{.name = "momentum", .type = AttrType::kFloat},
                               {.name = "epsilon", .type = AttrType::kFloat}};
constexpr AttrSpec kLayerAttrs[] = {{.name = "momentum", .type = AttrType::kFloat},
                                    {.name = "epsilon", .type = AttrType::kFloat},
                                    {.name = "dropout", .type = AttrType::kFloat}};
constexpr AttrSpec kBackAttrs[] = {{.name = "dropout", .type = AttrType::kFloat}};
constexpr size_t kRunningInputs[] = {3, 4};  // running_mean, running_var.
constexpr size_t kStatistics[] = {1, 2, 4};  // mean, var, count.
constexpr size_t kRunningInputsOfParts[] = {0, 1}, kStatisticsOfParts[] = {0, 1, 3};
constexpr AttrSpec kRunningAttrs[] = {{.name = "momentum", .type = AttrType::kFloat}};
// Users write a composite, which adds the parameters and running values.
constexpr OpSpec kSpecs[] = {
    {.name = "batch_norm",
     .outputs = 5,
     .infer = InferBatchNorm,
     .gradient = BatchNormGradient,
     .by_parts = BatchNormByParts,
     .sharding = {.loops = "Bc,c,c,c,c->Bc,c,c,c,same 1"},
     .user_visible = false,
     .attrs = kAttrs,
     .running = {.op = "batch_norm_running", .values = kRunningInputs, .statistics = kStatistics}},
    {.name = "batch_norm_grad",
     .outputs = 3,
     .infer = InferBatchNormGrad,
     .sharding = {.loops = "Bc,Bc,c,c,c->Bc,c,c"},
     .user_visible = false},
    {.name = "norm_layer",
     .outputs = 5,
     .infer = InferNormLayer,
     .sharding = {.loops = "BC,C,C,C,C->BC,C,C,C,same 1"},
     .user_visible = false,
     .attrs = kLayerAttrs},
    {.name = "norm_layer_back",
     .outputs = 4,
     .infer = InferNormLayerBack,
     .sharding = {.loops = "Bc,Bc,c,c,c,Bc->Bc,c,c,c"},
     .user_visible = false,
     .attrs = kBackAttrs},
    {.name = "batch_norm_statistics",
     .outputs = 4,
     .infer = InferStatistics,
     .sharding = {.loops = "c,c,c,c,c,c->c,c,c,c"},
     .user_visible = false,
     .attrs = kAttrs,
     .running = {.op = "batch_norm_running",
                 .values = kRunningInputsOfParts,
                 .statistics = kStatisticsOfParts}},
    {.name = "in_training",
     .infer = InferInTraining,
     .gradient = InTrainingGradient,
     .sharding = {.loops = "*,*->*"},
     .user_visible = false},
    {.name = "batch_norm_running",
     .outputs = 0,
     .infer = InferBatchNormRunning,
     .sharding = {.derive = RunningLoops},
     .user_visible = false,
     .attrs = kRunningAttrs,
     .traits = {.kind = OpKind::kUpdate, .writes = {0, 1}}},
};

}  // namespace

std::span<const OpSpec> BatchNormSpecs() { return kSpecs; }

}  // namespace dt
