#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/loss/in_batch_softmax.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// ------------------------------------------------------------------ softmax_cross_entropy

// softmax_cross_entropy(logits [B, classes], label [B, 1], weight [B, 1] optional): [1], the sum
// over the samples of weight · (log Σ_c exp logit_c - logit_label), divided by the number of
// samples of the whole step. The label is the number of a class, from 0; otherwise the loss is NaN.
// The gradient takes (dloss [1], logits, label, weight).
Status CheckClasses(const InferContext& context, size_t first) {
  for (size_t i = first; i < context.in_count(); ++i) DT_TRY_STATUS(ExpectFloat(context, i));
  DT_TRY_STATUS(ExpectRank(context, first, 2, "[B, classes]"));
  const SymShape& logits = context.in(first).shape;
  if (logits[1].symbol != kConstant || logits[1].times < 2) {
    return Invalid("{}: needs 2 classes or more, has {}", context.node.op,
                   context.shape_text(first));
  }
  const char* const names[] = {"the label", "the weight"};
  for (size_t i = first + 1; i < context.in_count(); ++i) {
    DT_TRY_STATUS(ExpectShape(context, i, {logits[0], Const(1)}, names[i - first - 1]));
  }
  return OkStatus();
}

Status InferCrossEntropy(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2, 3));
  DT_TRY_STATUS(CheckClasses(context, 0));
  context.outputs = {Output(context.in(0).dtype, {Const(1)})};
  return OkStatus();
}

Status InferCrossEntropyGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 3, 4));
  DT_TRY_STATUS(ExpectShape(context, 0, {Const(1)}, "the gradient of the loss"));
  DT_TRY_STATUS(CheckClasses(context, 1));
  context.outputs = {Output(context.in(1).dtype, context.in(1).shape)};
  return OkStatus();
}

// (dloss, the inputs of the node)
std::vector<ValueIndex> WithLossGrad(const GradientContext& context) {
  std::vector<ValueIndex> inputs = context.node().inputs;
  inputs.insert(inputs.begin(), context.output_grad(0));
  return inputs;
}

// Labels and weights get no gradient.
Status CrossEntropyGradient(GradientContext& context) {
  if (!context.needs_grad(0)) return OkStatus();
  context.SetInputGrad(0, context.Add("softmax_cross_entropy_grad", WithLossGrad(context), {})[0]);
  return OkStatus();
}

// The maximum is subtracted so that powers do not overflow. The result does not depend on it, so it
// needs no gradient.
void CrossEntropyByParts(PartsContext& context) {
  const std::vector<ValueIndex> inputs = context.node().inputs;
  const Attrs keep = {{"keep_dims", true}};
  Attrs last = keep, lasts = keep;
  last["axis"] = int64_t{-1};
  lasts["axis"] = std::vector<int64_t>{-1};
  const ValueIndex largest =
      context.Add("stop_gradient", {context.Add("reduce_max", {inputs[0]}, last)});
  const ValueIndex shifted = context.Add("sub", {inputs[0], largest});
  const ValueIndex sum = context.Add("reduce_sum", {context.Add("exp", {shifted})}, lasts);
  const ValueIndex own = context.Add("pick", {shifted, inputs[1]});
  ValueIndex loss = context.Add("sub", {context.Add("log", {sum}), own});
  if (inputs.size() > 2) loss = context.Add("mul", {loss, inputs[2]});
  context.Add("sample_mean", {loss});
}

OpCost CrossEntropyCost(const Graph& graph, const Node& node, int64_t batch) {
  double elements = 0;
  for (const ValueIndex v : node.inputs) elements += ElementsAt(graph.value(v).shape, batch);
  for (const ValueIndex v : node.outputs) elements += ElementsAt(graph.value(v).shape, batch);
  return {.flops = 20 * elements, .bytes = 4 * elements};
}

// ------------------------------------------------------------------ in_batch_softmax

// in_batch_softmax(user [B, d], item [B, d], label, weight, log_q [B, 1], index [length · B]): for
// retrieval. The items of the other samples of the SLICE stand for all other items (Yi et al.,
// "Sampling-bias-corrected neural modeling for large corpus item recommendations", RecSys 2019).
// With x_ij = user_i · item_j / temperature - log_q_j, the loss of sample i is log Σ_j exp x_ij -
// x_ii.
// Output 0: [1], the sum over the samples of label · weight · loss, divided by the number of
// samples of the whole step. Output 1, which has no gradient: [B, 3], for each sample user_i ·
// item_i / temperature, its loss, and 1 if x_ii is above every other x_ij.
// The attributes label, weight and log_q say which of these inputs are present. A label is 1 if
// user and item belong together, else 0; log_q is the logarithm of the item's share of the samples.
// With length > 0 there is an index of row positions: samples whose ids at `position` of `length`
// are equal have the same item and are not negatives of each other.
// The gradient takes (dloss [1], the inputs) and returns those of user and item.
Status CheckInBatch(const InferContext& context, const InBatchInputs& in) {
  DT_TRY_STATUS(ExpectInputs(context, in.end));
  const double temperature = FloatAttr(context.node.attrs, "temperature", 1);
  if (!(temperature > 0)) {
    return Invalid("{}: temperature {} is not above 0", context.node.op, temperature);
  }
  DT_TRY_STATUS(ExpectFloat(context, in.user));
  DT_TRY_STATUS(ExpectFloat(context, in.item));
  DT_TRY_STATUS(ExpectRank(context, in.user, 2, "[B, dim]"));
  const SymShape user = context.in(in.user).shape;
  if (user[1].symbol != kConstant) {
    return Invalid("{}: the user vectors must be [B, dim], are {}", context.node.op,
                   context.shape_text(in.user));
  }
  DT_TRY_STATUS(ExpectShape(context, in.item, user, "the item vectors"));
  const std::pair<size_t, const char*> columns[] = {
      {in.label, "the label"}, {in.weight, "the weight"}, {in.log_q, "log_q"}};
  for (const auto& [at, name] : columns) {
    if (at == kNone) continue;
    DT_TRY_STATUS(ExpectFloat(context, at));
    DT_TRY_STATUS(ExpectShape(context, at, {user[0], Const(1)}, name));
  }
  if (in.index == kNone) return OkStatus();
  if (in.length < 0 || in.position < 0 || in.position >= in.length) {
    return Invalid("{}: position {} is not within {} ids", context.node.op, in.position, in.length);
  }
  DT_TRY_STATUS(ExpectIndex(context, in.index));
  return ExpectShape(context, in.index, {Dim{user[0].symbol, user[0].times * in.length}},
                     "the index");
}

Status InferInBatch(InferContext& context) {
  const InBatchInputs in(context.node.attrs, 0);
  DT_TRY_STATUS(CheckInBatch(context, in));
  const Value& user = context.in(in.user);
  context.outputs = {Output(user.dtype, {Const(1)}), Output(user.dtype, {user.shape[0], Const(3)})};
  return OkStatus();
}

Status InferInBatchGrad(InferContext& context) {
  const InBatchInputs in(context.node.attrs, 1);
  DT_TRY_STATUS(CheckInBatch(context, in));
  DT_TRY_STATUS(ExpectShape(context, 0, {Const(1)}, "the gradient of the loss"));
  const Value& user = context.in(in.user);
  context.outputs = {Output(user.dtype, user.shape), Output(user.dtype, user.shape)};
  return OkStatus();
}

Status InBatchGradient(GradientContext& context) {
  if (context.output_grad(0) == kNone) return OkStatus();
  const std::vector<ValueIndex> grads =
      context.Add("in_batch_softmax_grad", WithLossGrad(context), context.node().attrs, 2);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (context.needs_grad(i)) context.SetInputGrad(i, grads[i]);
  }
  return OkStatus();
}

// The cost with `products` matrix products of all users and all items.
OpCost InBatchCostOf(const SymShape& user, int64_t batch, double products) {
  const auto samples = static_cast<double>(batch);
  const double vectors = ElementsAt(user, batch);
  return {.flops = products * 2 * samples * vectors + 20 * samples * samples,
          .bytes = 4 * (4 * vectors + (1 + products) * samples * samples)};
}
OpCost InBatchCost(const Graph& graph, const Node& node, int64_t batch) {
  return InBatchCostOf(graph.value(node.inputs[0]).shape, batch, 1);
}
OpCost InBatchGradCost(const Graph& graph, const Node& node, int64_t batch) {
  return InBatchCostOf(graph.value(node.inputs[1]).shape, batch, 3);
}

constexpr AttrSpec kInBatchAttrs[] = {{.name = "temperature", .type = AttrType::kFloat},
                                      {.name = "label", .type = AttrType::kBool},
                                      {.name = "weight", .type = AttrType::kBool},
                                      {.name = "log_q", .type = AttrType::kBool},
                                      {.name = "length"},
                                      {.name = "position"}};
// Users write these in the job's `loss`, not as nodes. in_batch_softmax is not cut, because every
// sample reads every other.
constexpr OpSpec kSpecs[] = {
    {.name = "softmax_cross_entropy",
     .infer = InferCrossEntropy,
     .gradient = CrossEntropyGradient,
     .by_parts = CrossEntropyByParts,
     .cost = CrossEntropyCost,
     .sharding = {.loops = "bC,b1,b1->1"},
     .user_visible = false},
    {.name = "softmax_cross_entropy_grad",
     .infer = InferCrossEntropyGrad,
     .cost = CrossEntropyCost,
     .sharding = {.loops = "1,bC,b1,b1->bC"},
     .user_visible = false},
    {.name = "in_batch_softmax",
     .outputs = 2,
     .infer = InferInBatch,
     .gradient = InBatchGradient,
     .cost = InBatchCost,
     .sharding = {.derive = UncutLoops},
     .user_visible = false,
     .attrs = kInBatchAttrs},
    {.name = "in_batch_softmax_grad",
     .outputs = 2,
     .infer = InferInBatchGrad,
     .cost = InBatchGradCost,
     .sharding = {.derive = UncutLoops},
     .user_visible = false,
     .attrs = kInBatchAttrs},
};

}  // namespace

std::span<const OpSpec> SoftmaxLossSpecs() { return kSpecs; }

}  // namespace dt
