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

// in_batch_softmax(user [B, d], item [N, d], label, weight [B, 1], log_q [N, 1], key [N, 2]): for
// retrieval, N = B. The items of the other samples of the SLICE stand for all others (Yi et al.,
// "Sampling-bias-corrected neural modeling for large corpus item recommendations", RecSys 2019).
// With x_ij = user_i · item_j / temperature - log_q_j, the loss of sample i is log Σ_j exp x_ij -
// x_ii.
// Output 0: [1], the sum over the samples of label · weight · loss, divided by the number of
// samples of the whole step. Output 1, which has no gradient: [B, 3], for each sample user_i ·
// item_i / temperature, its loss, and 1 if x_ii is above every other x_ij.
// The attributes label, weight, log_q and key say which of these inputs are present. A label is 1
// if user and item belong together, else 0; log_q is the logarithm of the item's share of the
// samples. Samples with equal keys (u32, as InputKind::kKeys) have the same item and are not
// negatives of each other.
// On devices that have B of the slice's N samples, those from RunInfo::first_in_slice on, user i
// belongs to item first_in_slice + i.
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
  DT_TRY_STATUS(ExpectRank(context, in.item, 2, "[B, dim]"));
  const SymShape item = context.in(in.item).shape;
  DT_TRY_STATUS(ExpectShape(context, in.item, {item[0], user[1]}, "the item vectors"));
  struct Column {
    size_t at;
    Dim samples;
    const char* name;
  };
  const Column columns[] = {{in.label, user[0], "the label"},
                            {in.weight, user[0], "the weight"},
                            {in.log_q, item[0], "log_q"}};
  for (const Column& column : columns) {
    if (column.at == kNone) continue;
    DT_TRY_STATUS(ExpectFloat(context, column.at));
    DT_TRY_STATUS(ExpectShape(context, column.at, {column.samples, Const(1)}, column.name));
  }
  if (in.key == kNone) return OkStatus();
  DT_TRY_STATUS(ExpectIndex(context, in.key));
  return ExpectShape(context, in.key, {item[0], Const(2)}, "the key");
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

// Users are cut, and every device has all items.
std::string InBatchTerms(const Attrs& attrs) {
  std::string terms = "bD,ND";
  for (const char* const column : {"label", "weight"}) {
    if (BoolAttr(attrs, column, false)) terms += ",b1";
  }
  if (BoolAttr(attrs, "log_q", false)) terms += ",N1";
  if (BoolAttr(attrs, "key", false)) terms += ",N.";
  return terms;
}
std::string InBatchLoops(const Graph&, const Node& node) {
  return InBatchTerms(node.attrs) + "->1,b.";
}
std::string InBatchGradLoops(const Graph&, const Node& node) {
  return "1," + InBatchTerms(node.attrs) + "->bD,ND";
}

// The cost with `products` matrix products of users and items; user vectors are input `first`.
OpCost InBatchCostOf(const Graph& graph, const Node& node, size_t first, int64_t batch,
                     double products) {
  const SymShape& user = graph.value(node.inputs[first]).shape;
  const SymShape& item = graph.value(node.inputs[first + 1]).shape;
  const double users = ElementsAt({user[0]}, batch), items = ElementsAt({item[0]}, batch);
  const double vectors = ElementsAt(user, batch) + ElementsAt(item, batch);
  const auto dim = static_cast<double>(user[1].times);
  return {.flops = products * 2 * users * items * dim + 20 * users * items,
          .bytes = 4 * (2 * vectors + (1 + products) * users * items)};
}
OpCost InBatchCost(const Graph& graph, const Node& node, int64_t batch) {
  return InBatchCostOf(graph, node, 0, batch, 1);
}
OpCost InBatchGradCost(const Graph& graph, const Node& node, int64_t batch) {
  return InBatchCostOf(graph, node, 1, batch, 3);
}

constexpr AttrSpec kInBatchAttrs[] = {{.name = "temperature", .type = AttrType::kFloat},
                                      {.name = "label", .type = AttrType::kBool},
                                      {.name = "weight", .type = AttrType::kBool},
                                      {.name = "log_q", .type = AttrType::kBool},
                                      {.name = "key", .type = AttrType::kBool}};
// Users write these in the job's `loss`, not as nodes.
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
     .sharding = {.derive = InBatchLoops},
     .user_visible = false,
     .attrs = kInBatchAttrs},
    {.name = "in_batch_softmax_grad",
     .outputs = 2,
     .infer = InferInBatchGrad,
     .cost = InBatchGradCost,
     .sharding = {.derive = InBatchGradLoops},
     .user_visible = false,
     .attrs = kInBatchAttrs},
};

}  // namespace

std::span<const OpSpec> SoftmaxLossSpecs() { return kSpecs; }

}  // namespace dt
