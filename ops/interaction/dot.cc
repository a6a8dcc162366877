#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// dot(x…, each [B, fields, dim], or [B, dim] for one field): [B, n (n - 1) / 2], the dot products
// of fields i > j among the n fields of all inputs, in the order (1,0), (2,0), (2,1), (3,0), ….
// This is DLRM's interaction.
Result<SymShape> PairsOf(const InferContext& context, size_t inputs) {
  const SymShape& first = context.in(0).shape;
  int64_t fields = 0;
  for (size_t i = 0; i < inputs; ++i) {
    const SymShape& shape = context.in(i).shape;
    const bool fits = (shape.size() == 2 || shape.size() == 3) && shape[0] == first[0] &&
                      shape.back() == first.back() && shape.back().symbol == kConstant &&
                      (shape.size() == 2 || shape[1].symbol == kConstant);
    if (!fits) {
      return Invalid("dot: input {} (\"{}\") is {}; all must be [B, fields, dim] or [B, dim]",
                     i + 1, context.in(i).name, context.shape_text(i));
    }
    fields += shape.size() == 3 ? shape[1].times : 1;
  }
  if (fields < 2) return Invalid("dot: needs at least two fields, has {}", context.shape_text(0));
  return SymShape{first[0], Const(fields * (fields - 1) / 2)};
}

Status InferDot(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 1, kNone));
  DT_TRY_STATUS(ExpectFloats(context, context.in_count()));
  DT_TRY(SymShape out, PairsOf(context, context.in_count()));
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

// dot_grad(x…, dy): the gradient of each x.
Status InferDotGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2, kNone));
  DT_TRY_STATUS(ExpectFloats(context, context.in_count()));
  const size_t inputs = context.in_count() - 1;
  DT_TRY(const SymShape pairs, PairsOf(context, inputs));
  DT_TRY_STATUS(ExpectShape(context, inputs, pairs, "the gradient"));
  context.outputs.clear();
  for (size_t i = 0; i < inputs; ++i) {
    context.outputs.push_back(Output(context.in(i).dtype, context.in(i).shape));
  }
  return OkStatus();
}

// ------------------------------------------------------------ with a concatenation

// Made by the pass `fuse`, as dense_layer is. concat_dot(x…, before [B, width]):
// concat(before, dot(x…)), [B, width + pairs].
Status InferConcatDot(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2, kNone));
  DT_TRY_STATUS(ExpectFloats(context, context.in_count()));
  const size_t inputs = context.in_count() - 1;
  DT_TRY(SymShape out, PairsOf(context, inputs));
  DT_TRY_STATUS(ExpectRank(context, inputs, 2, "[B, width]"));
  const SymShape& before = context.in(inputs).shape;
  if (before[0] != out[0] || before[1].symbol != kConstant) {
    return Invalid("concat_dot: {} does not fit before {}", context.shape_text(inputs),
                   context.shape_text(0));
  }
  out[1].times += before[1].times;
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

// concat_dot_grad(x…, dy [B, width + pairs]): the gradient of each x.
Status InferConcatDotGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2, kNone));
  DT_TRY_STATUS(ExpectFloats(context, context.in_count()));
  const size_t inputs = context.in_count() - 1;
  DT_TRY(const SymShape pairs, PairsOf(context, inputs));
  const SymShape& dy = context.in(inputs).shape;
  const bool fits = dy.size() == 2 && dy[0] == pairs[0] && dy[1].symbol == kConstant &&
                    dy[1].times >= pairs[1].times;
  if (!fits) {
    return Invalid("concat_dot_grad: the gradient {} has no room for {} pairs",
                   context.shape_text(inputs), pairs[1].times);
  }
  context.outputs.clear();
  for (size_t i = 0; i < inputs; ++i) {
    context.outputs.push_back(Output(context.in(i).dtype, context.in(i).shape));
  }
  return OkStatus();
}

Status DotGradient(GradientContext& context) {
  std::vector<ValueIndex> inputs = context.node().inputs;
  const size_t count = inputs.size();
  inputs.push_back(context.output_grad(0));
  const std::vector<ValueIndex> grads = context.Add("dot_grad", std::move(inputs), {}, count);
  for (size_t i = 0; i < count; ++i) {
    if (context.needs_grad(i)) context.SetInputGrad(i, grads[i]);
  }
  return OkStatus();
}

// The pairs are the output of dot, or the last input of dot_grad.
OpCost DotCost(const Graph& graph, const Node& node, int64_t batch) {
  const bool is_grad = node.op.ends_with("grad");
  const ValueIndex of_pairs = is_grad ? node.inputs.back() : node.outputs[0];
  const double pairs = ElementsAt(graph.value(of_pairs).shape, batch);
  const double dim = ElementsAt({graph.value(node.inputs[0]).shape.back()}, batch);
  const double products = is_grad ? 2 * pairs : pairs;
  OpCost cost{.flops = 2 * products * dim};
  for (const ValueIndex v : node.inputs) cost.bytes += BytesAt(graph.value(v), batch);
  for (const ValueIndex v : node.outputs) cost.bytes += BytesAt(graph.value(v), batch);
  return cost;
}

std::string DotLoops(const Graph& graph, const Node& node) {
  const bool is_grad = node.op.ends_with("grad"), joined = node.op.starts_with("concat");
  std::string fields;
  for (size_t i = 0; i + (is_grad || joined ? 1 : 0) < node.inputs.size(); ++i) {
    fields += i > 0 ? "," : "";
    fields += graph.value(node.inputs[i]).shape.size() == 2 ? "b" : "b.";
    fields += joined && !is_grad ? 'D' : 'd';  // A sum of parts would have `before` several times.
  }
  if (is_grad) return fields + ",bP->" + fields;
  return fields + (joined ? ",bW->bP" : "->bP");
}

constexpr OpSpec kSpecs[] = {
    {.name = "dot",
     .infer = InferDot,
     .gradient = DotGradient,
     .cost = DotCost,
     .sharding = {.derive = DotLoops}},
    {.name = "dot_grad",
     .outputs = kVariableOutputs,
     .infer = InferDotGrad,
     .cost = DotCost,
     .sharding = {.derive = DotLoops},
     .user_visible = false},
    {.name = "concat_dot",
     .infer = InferConcatDot,
     .cost = DotCost,
     .sharding = {.derive = DotLoops},
     .user_visible = false},
    {.name = "concat_dot_grad",
     .outputs = kVariableOutputs,
     .infer = InferConcatDotGrad,
     .cost = DotCost,
     .sharding = {.derive = DotLoops},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> DotSpecs() { return kSpecs; }

}  // namespace dt
