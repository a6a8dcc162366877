#include "ops/infer.h"
#include "ops/moe/dispatched.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// Checks rows [R, K] and the ends u32 [E] of the experts' ranges, as made by `dispatch`.
Status ExpectRanges(const InferContext& context) {
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[rows, width]"));
  DT_TRY(const Node* const dispatch, DispatchOf(context, 1, 1));
  DT_TRY_STATUS(ExpectRank(context, 1, 1, "[experts]"));
  if (dispatch != nullptr) {
    const SymShape& sorted = context.graph.value(dispatch->outputs[0]).shape;
    if (sorted[0] != context.in(0).shape[0]) {
      return Invalid("{}: rows of {} are not as many as those that \"{}\" sorts, {}",
                     context.node.op, context.shape_text(0), dispatch->name,
                     ShapeText(context.graph, sorted));
    }
  }
  if (context.in(1).shape[0].symbol == kConstant) return OkStatus();
  return Invalid("{}: the ends of the experts' rows are {}, their number must not vary",
                 context.node.op, context.shape_text(1));
}

// expert_matmul(rows [R, K], ends u32 [E], weight [E, K, N], bias [E, N] optional): [R, N], each
// row times the weight of the expert whose range it is in, plus the expert's bias. With transpose_b
// the weight is [E, N, K].
Status InferExpertMatmul(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 3, 4));
  DT_TRY_STATUS(ExpectRanges(context));
  DT_TRY_STATUS(ExpectFloat(context, 2));
  const bool transposed = BoolAttr(context.node.attrs, "transpose_b", false);
  DT_TRY_STATUS(ExpectRank(context, 2, 3,
                           transposed ? "[experts, units, width]" : "[experts, width, units]"));
  const SymShape &weight = context.in(2).shape, &ends = context.in(1).shape;
  SymShape out = context.in(0).shape;
  if (weight[0] != ends[0] || weight[transposed ? 2 : 1] != out[1]) {
    return Invalid("expert_matmul: a weight of {}{} does not fit rows of {} of {} experts",
                   context.shape_text(2), transposed ? " transposed" : "", context.shape_text(0),
                   ends[0].times);
  }
  out[1] = weight[transposed ? 1 : 2];
  if (context.in_count() == 4) {
    DT_TRY_STATUS(ExpectFloat(context, 3));
    DT_TRY_STATUS(ExpectShape(context, 3, {ends[0], out[1]}, "the bias"));
  }
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

// expert_matmul_grad(a [R, M], ends u32 [E], b [R, N]): aᵀ b over each expert's rows, [E, M, N].
Status InferExpertMatmulGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 3));
  DT_TRY_STATUS(ExpectRanges(context));
  DT_TRY_STATUS(ExpectFloat(context, 2));
  DT_TRY_STATUS(ExpectRank(context, 2, 2, "[rows, units]"));
  const SymShape &a = context.in(0).shape, &b = context.in(2).shape;
  if (a[0] != b[0]) {
    return Invalid("expert_matmul_grad: numbers of rows differ: {} and {}", context.shape_text(0),
                   context.shape_text(2));
  }
  context.outputs = {Output(context.in(0).dtype, {context.in(1).shape[0], a[1], b[1]})};
  return OkStatus();
}

// expert_sum(rows [R, N], ends u32 [E]): the sum of each expert's rows, [E, N].
Status InferExpertSum(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectRanges(context));
  context.outputs = {Output(context.in(0).dtype, {context.in(1).shape[0], context.in(0).shape[1]})};
  return OkStatus();
}

Status ExpertMatmulGradient(GradientContext& context) {
  const std::vector<ValueIndex> in = context.node().inputs;
  const ValueIndex dy = context.output_grad(0), ends = in[1];
  const bool transposed = BoolAttr(context.node().attrs, "transpose_b", false);
  if (context.needs_grad(0)) {
    const Attrs attrs = transposed ? Attrs{} : Attrs{{"transpose_b", true}};
    context.SetInputGrad(0, context.Add("expert_matmul", {dy, ends, in[2]}, attrs)[0]);
  }
  if (context.needs_grad(2)) {
    const ValueIndex left = transposed ? dy : in[0], right = transposed ? in[0] : dy;
    context.SetInputGrad(2, context.Add("expert_matmul_grad", {left, ends, right}, {})[0]);
  }
  if (in.size() == 4 && context.needs_grad(3)) {
    context.SetInputGrad(3, context.Add("expert_sum", {dy, ends}, {})[0]);
  }
  return OkStatus();
}

// Two operations for each number of each row and each unit.
OpCost CostOf(const Graph& graph, const Node& node, int64_t batch, Dim units) {
  OpCost cost;
  for (const ValueIndex v : node.inputs) cost.bytes += 4 * ElementsAt(graph.value(v).shape, batch);
  cost.bytes += 4 * ElementsAt(graph.value(node.outputs[0]).shape, batch);
  cost.flops =
      2 * ElementsAt(graph.value(node.inputs[0]).shape, batch) * ElementsAt({units}, batch);
  return cost;
}
OpCost ExpertMatmulCost(const Graph& graph, const Node& node, int64_t batch) {
  return CostOf(graph, node, batch, graph.value(node.outputs[0]).shape[1]);
}
OpCost ExpertMatmulGradCost(const Graph& graph, const Node& node, int64_t batch) {
  return CostOf(graph, node, batch, graph.value(node.inputs[2]).shape[1]);
}

// With a bias the inner dimension is not cut, since the bias would be added once for each part.
std::string ExpertMatmulLoops(const Graph&, const Node& node) {
  const bool transposed = BoolAttr(node.attrs, "transpose_b", false);
  if (node.inputs.size() == 4) return transposed ? "e'K,^e,enK,en->e'n" : "e'K,^e,eKn,en->e'n";
  return transposed ? "e'k,^e,enk->e'n" : "e'k,^e,ekn->e'n";
}

constexpr AttrSpec kAttrs[] = {{.name = "transpose_b", .type = AttrType::kBool}};
constexpr OpSpec kSpecs[] = {
    {.name = "expert_matmul",
     .infer = InferExpertMatmul,
     .gradient = ExpertMatmulGradient,
     .cost = ExpertMatmulCost,
     .sharding = {.derive = ExpertMatmulLoops},
     .attrs = kAttrs},
    {.name = "expert_matmul_grad",
     .infer = InferExpertMatmulGrad,
     .cost = ExpertMatmulGradCost,
     .sharding = {.loops = "e'm,^e,e'n->emn"},
     .user_visible = false},
    {.name = "expert_sum",
     .infer = InferExpertSum,
     .sharding = {.loops = "e'n,^e->en"},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> ExpertMatmulSpecs() { return kSpecs; }

}  // namespace dt
