#include "ops/dense/product_gradient.h"
#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// matmul(a, b): each operand is seen as a matrix whose rows are all dimensions but the last, and
// transposed if asked. The result keeps the leading dimensions of a unless a is transposed: [B, F,
// K] times [K, N] is [B, F, N]; with transpose_a, [B, F, K] and [B, F, N] give [K, N].
struct Operand {
  Dim rows, cols;
};

Result<Operand> OperandOf(const InferContext& context, size_t i, bool transpose) {
  const SymShape& shape = context.in(i).shape;
  if (shape.size() < 2) {
    return Invalid("matmul: input {} (\"{}\") needs two dimensions, is {}", i + 1,
                   context.in(i).name, context.shape_text(i));
  }
  DT_TRY(const Dim rows, Product(context, shape, 0, shape.size() - 1));
  if (transpose) return Operand{shape.back(), rows};
  return Operand{rows, shape.back()};
}

Result<SymShape> ProductShape(const InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  DT_TRY_STATUS(ExpectMath(context));
  const bool transpose_a = BoolAttr(context.node.attrs, "transpose_a", false);
  const bool transpose_b = BoolAttr(context.node.attrs, "transpose_b", false);
  DT_TRY(const Operand a, OperandOf(context, 0, transpose_a));
  DT_TRY(const Operand b, OperandOf(context, 1, transpose_b));
  if (a.cols != b.rows) {
    return Invalid("matmul: inner dimensions differ: {}{} times {}{}", context.shape_text(0),
                   transpose_a ? " transposed" : "", context.shape_text(1),
                   transpose_b ? " transposed" : "");
  }
  SymShape out = context.in(0).shape;
  if (transpose_a) out = {a.rows, a.rows};
  out.back() = b.cols;
  return out;
}

Status InferMatmul(InferContext& context) {
  DT_TRY(SymShape out, ProductShape(context));
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

// mixed_matmul: a product of operands of mixed types. Some are in bf16, because the pass
// `bf16_activations` stores them so; the others are floats, as the result is. `math` is bf16.
Status InferMixedMatmul(InferContext& context) {
  DT_TRY(SymShape out, ProductShape(context));
  context.outputs = {Output(DType::kF32, std::move(out))};
  return OkStatus();
}

// Only a left operand that is not transposed may have more than two dimensions.
Status MatmulGradient(GradientContext& context) {
  const Node& node = context.node();
  const bool ta = BoolAttr(node.attrs, "transpose_a", false);
  const bool keeps[] = {!ta, false};
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const SymShape& shape = context.graph().value(node.inputs[i]).shape;
    if (context.needs_grad(i) && !keeps[i] && shape.size() > 2) {
      return Invalid("matmul: there is no gradient for input {} of shape {}", i + 1,
                     ShapeText(context.graph(), shape));
    }
  }
  AddProductGradient(context, "matmul");
  return OkStatus();
}

OpCost MatmulCost(const Graph& graph, const Node& node, int64_t batch) {
  const SymShape& a = graph.value(node.inputs[0]).shape;
  const SymShape& out = graph.value(node.outputs[0]).shape;
  SymShape inner = {a.back()};
  if (BoolAttr(node.attrs, "transpose_a", false)) inner.assign(a.begin(), a.end() - 1);
  OpCost cost;
  cost.flops = 2 * ElementsAt(inner, batch) * ElementsAt(out, batch);
  cost.bytes = 4 * ElementsAt(out, batch);
  for (const ValueIndex v : node.inputs) cost.bytes += BytesAt(graph.value(v), batch);
  return cost;
}

// If both operands have the summed dimension among their rows, it is cut only if all dimensions
// before the last agree.
std::string MatmulLoops(const Graph& graph, const Node& node) {
  const bool ta = BoolAttr(node.attrs, "transpose_a", false);
  const bool tb = BoolAttr(node.attrs, "transpose_b", false);
  const SymShape& a = graph.value(node.inputs[0]).shape;
  const SymShape& b = graph.value(node.inputs[1]).shape;
  if (!ta) {
    if (b.size() > 2) return tb ? "*K,~K->*N" : "*K,~n->*n";
    return tb ? "*k,nk->*n" : "*k,kn->*n";
  }
  if (tb) return a.size() == 2 && b.size() == 2 ? "km,nk->mn" : "~m,~.->m.";
  const bool alike = a.size() == b.size() && std::equal(a.begin(), a.end() - 1, b.begin());
  return alike ? "*m,*n->mn" : "~m,~n->mn";
}

constexpr AttrSpec kAttrs[] = {{.name = "transpose_a", .type = AttrType::kBool},
                               {.name = "transpose_b", .type = AttrType::kBool},
                               {.name = "math", .type = AttrType::kText}};
constexpr OpSpec kSpecs[] = {{.name = "matmul",
                              .infer = InferMatmul,
                              .gradient = MatmulGradient,
                              .cost = MatmulCost,
                              .sharding = {.derive = MatmulLoops, .linear = "&"},
                              .attrs = kAttrs,
                              .bf16 = {.rounded = {0, 1}}},
                             {.name = "mixed_matmul",
                              .infer = InferMixedMatmul,
                              .cost = MatmulCost,
                              .sharding = {.derive = MatmulLoops, .linear = "&"},
                              .user_visible = false,
                              .takes_bf16 = true,
                              .attrs = kAttrs}};

}  // namespace

std::span<const OpSpec> MatmulSpecs() { return kSpecs; }

}  // namespace dt
