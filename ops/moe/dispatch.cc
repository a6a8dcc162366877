// Layers of experts in which each sample uses k: Shazeer et al., "Outrageously Large Neural
// Networks: The Sparsely-Gated Mixture-of-Experts Layer" (ICLR 2017). There is no capacity, as in
// Gale et al., "MegaBlocks" (MLSys 2023): the rows that experts take are sorted by expert, [k B,
// D], and each expert multiplies its own range of them. The capacity of GShard and Switch
// Transformer, ceil(factor k B / E) rows for each expert, is no whole multiple of B. Without it no
// sample is dropped, so a sample's result does not depend on the others of its slice.
#include <algorithm>

#include "ops/infer.h"
#include "ops/moe/dispatched.h"
#include "ops/op_families.h"

namespace dt {

Result<const Node*> DispatchOf(const InferContext& context, size_t i, size_t output) {
  DT_TRY_STATUS(ExpectIndex(context, i));
  const ValueIndex from = context.node.inputs[i];
  const NodeIndex producer = context.graph.value(from).producer;
  if (producer == kNone) return nullptr;
  const Node& node = context.graph.nodes[producer];
  if (node.op == "dispatch" && node.outputs[output] == from) return &node;
  return Invalid("{}: input {} (\"{}\") must be result .{} of a dispatch", context.node.op, i + 1,
                 context.in(i).name, output);
}

namespace {

// Input `i`, u32 [B, k], has a number for each choice of each row of a [B, D].
Status ExpectChoices(const InferContext& context, size_t i, const SymShape& of) {
  DT_TRY_STATUS(ExpectIndex(context, i));
  DT_TRY_STATUS(ExpectRank(context, i, 2, "[B, k]"));
  const SymShape& shape = context.in(i).shape;
  if (shape[0] == of[0] && shape[1].symbol == kConstant && shape[1].times > 0) return OkStatus();
  return Invalid("{}: choices of {} do not fit rows of {}", context.node.op, context.shape_text(i),
                 ShapeText(context.graph, of));
}

// The shape [k B, D], for rows [B, D] with choices [B, k].
SymShape ChosenRows(SymShape rows, const SymShape& choices) {
  rows[0].times *= choices[1].times;
  return rows;
}

constexpr int64_t kExpertsMax = 65535;  // A card's grid can have this many blocks along one side.

// dispatch(x [B, D], chosen u32 [B, k]) takes k of the `experts` for each row (numbers beyond the
// last count as the last). Outputs: x's rows sorted by the expert that takes them, [k B, D], those
// of one expert by row and then by choice; where each expert's rows end, u32 [experts]; and the
// position of each choice's row among them, u32 [B, k].
Status InferDispatch(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[B, D]"));
  const SymShape &x = context.in(0).shape, &chosen = context.in(1).shape;
  DT_TRY_STATUS(ExpectChoices(context, 1, x));
  const int64_t experts = IntAttr(context.node.attrs, "experts", 0);
  if (experts < chosen[1].times) {
    return Invalid("dispatch: {} choices for each row need as many experts, there are {}",
                   chosen[1].times, experts);
  }
  if (experts > kExpertsMax) {
    return Invalid("dispatch: {} experts; at most {} are possible", experts, kExpertsMax);
  }
  context.outputs = {Output(context.in(0).dtype, ChosenRows(x, chosen)),
                     Output(DType::kU32, {Const(experts)}), Output(DType::kU32, chosen)};
  return OkStatus();
}

// Ends and positions have no gradient.
Status DispatchGradient(GradientContext& context) {
  if (context.output_grad(0) == kNone) return OkStatus();
  const std::vector<ValueIndex> inputs = {context.output_grad(0), context.node().outputs[2]};
  context.SetInputGrad(0, context.Add("combine", inputs, {})[0]);
  return OkStatus();
}

// combine(rows [k B, D], positions u32 [B, k], gates [B, k]): [B, D], for each sample the sum of
// its choices' rows times their gates, in the order of the choices. Without gates all gates are 1.
Status InferCombine(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2, 3));
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[k B, D]"));
  DT_TRY_STATUS(ExpectRank(context, 1, 2, "[B, k]"));
  const SymShape positions = context.in(1).shape;
  SymShape out = {positions[0], context.in(0).shape[1]};
  DT_TRY_STATUS(DispatchOf(context, 1, 2).status());
  DT_TRY_STATUS(ExpectChoices(context, 1, out));
  DT_TRY_STATUS(ExpectShape(context, 0, ChosenRows(out, positions), "the rows"));
  if (context.in_count() == 3) {
    DT_TRY_STATUS(ExpectFloat(context, 2));
    DT_TRY_STATUS(ExpectShape(context, 2, positions, "the gates"));
  }
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

Status CombineGradient(GradientContext& context) {
  const std::vector<ValueIndex> inputs = context.node().inputs;
  const ValueIndex dy = context.output_grad(0);
  if (context.needs_grad(0)) {
    std::vector<ValueIndex> from = inputs;
    from[0] = dy;
    context.SetInputGrad(0, context.Add("combine_grad", std::move(from), {})[0]);
  }
  if (inputs.size() == 3 && context.needs_grad(2)) {
    context.SetInputGrad(2, context.Add("combine_gates_grad", {dy, inputs[1], inputs[0]}, {})[0]);
  }
  return OkStatus();
}

// combine_grad(dy [B, D], positions, gates [B, k]): [k B, D], for each choice dy times its gate.
Status InferCombineGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2, 3));
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[B, D]"));
  const SymShape &dy = context.in(0).shape, &positions = context.in(1).shape;
  DT_TRY_STATUS(DispatchOf(context, 1, 2).status());
  DT_TRY_STATUS(ExpectChoices(context, 1, dy));
  if (context.in_count() == 3) {
    DT_TRY_STATUS(ExpectFloat(context, 2));
    DT_TRY_STATUS(ExpectShape(context, 2, positions, "the gates"));
  }
  context.outputs = {Output(context.in(0).dtype, ChosenRows(dy, positions))};
  return OkStatus();
}

// combine_gates_grad(dy [B, D], positions, rows [k B, D]): [B, k], dy · each choice's row.
Status InferCombineGatesGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 3));
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectFloat(context, 2));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[B, D]"));
  const SymShape &dy = context.in(0).shape, &positions = context.in(1).shape;
  DT_TRY_STATUS(DispatchOf(context, 1, 2).status());
  DT_TRY_STATUS(ExpectChoices(context, 1, dy));
  DT_TRY_STATUS(ExpectShape(context, 2, ChosenRows(dy, positions), "the rows"));
  context.outputs = {Output(context.in(0).dtype, positions)};
  return OkStatus();
}

// A multiplication and an addition for each element of the rows.
OpCost CombineCost(const Graph& graph, const Node& node, int64_t batch) {
  OpCost cost;
  double largest = 0;
  const auto count = [&](ValueIndex v) {
    const double elements = ElementsAt(graph.value(v).shape, batch);
    largest = std::max(largest, elements);
    cost.bytes += 4 * elements;
  };
  for (const ValueIndex v : node.inputs) count(v);
  for (const ValueIndex v : node.outputs) count(v);
  cost.flops = 2 * largest;
  return cost;
}

constexpr AttrSpec kAttrs[] = {{.name = "experts", .required = true}};
constexpr OpSpec kSpecs[] = {
    {.name = "dispatch",
     .outputs = 3,
     .infer = InferDispatch,
     .gradient = DispatchGradient,
     .sharding = {.loops = "Bd,BK->.d,same E,same BK"},
     .attrs = kAttrs},
    {.name = "combine",
     .infer = InferCombine,
     .gradient = CombineGradient,
     .cost = CombineCost,
     .sharding = {.loops = ".d,bK,bK->bd"}},
    {.name = "combine_grad",
     .infer = InferCombineGrad,
     .cost = CombineCost,
     .sharding = {.loops = "Bd,BK,BK->.d"},
     .user_visible = false},
    {.name = "combine_gates_grad",
     .infer = InferCombineGatesGrad,
     .cost = CombineCost,
     .sharding = {.loops = "bd,bK,.d->bK"},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> DispatchSpecs() { return kSpecs; }

}  // namespace dt
