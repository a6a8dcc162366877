#include "ops/dense/product_gradient.h"
#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// batch_matmul(a [lead.., M, K], b [lead.., K, N]): [lead.., M, N], one product for each position
// of the leading dimensions, which are equal in both. transpose_a and transpose_b exchange the last
// two dimensions of an operand first.
struct Transposed {
  bool a, b;
  explicit Transposed(const Attrs& attrs)
      : a(BoolAttr(attrs, "transpose_a", false)), b(BoolAttr(attrs, "transpose_b", false)) {}
};

// Rows and columns of an operand of at least two dimensions.
struct MatrixDims {
  Dim rows, cols;
  MatrixDims(const SymShape& shape, bool transposed)
      : rows(shape[shape.size() - 2]), cols(shape.back()) {
    if (transposed) std::swap(rows, cols);
  }
};

Status InferBatchMatmul(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  const SymShape &a = context.in(0).shape, &b = context.in(1).shape;
  const bool alike = a.size() == b.size() && (a.size() == 3 || a.size() == 4) &&
                     std::equal(a.begin(), a.end() - 2, b.begin());
  if (!alike) {
    return Invalid(
        "batch_matmul: needs two inputs of 3 or 4 dimensions that agree in all but the last two, "
        "has {} and {}",
        context.shape_text(0), context.shape_text(1));
  }
  const Transposed transposed(context.node.attrs);
  const MatrixDims left(a, transposed.a), right(b, transposed.b);
  if (left.cols != right.rows) {
    return Invalid("batch_matmul: inner dimensions differ: {}{} times {}{}", context.shape_text(0),
                   transposed.a ? " transposed" : "", context.shape_text(1),
                   transposed.b ? " transposed" : "");
  }
  SymShape out(a.begin(), a.end() - 2);
  out.push_back(left.rows);
  out.push_back(right.cols);
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

Status BatchMatmulGradient(GradientContext& context) {
  AddProductGradient(context, "batch_matmul");
  return OkStatus();
}

OpCost BatchMatmulCost(const Graph& graph, const Node& node, int64_t batch) {
  const SymShape& a = graph.value(node.inputs[0]).shape;
  const SymShape& b = graph.value(node.inputs[1]).shape;
  const SymShape& out = graph.value(node.outputs[0]).shape;
  const MatrixDims left(a, Transposed(node.attrs).a);
  const double outs = ElementsAt(out, batch);
  return {.flops = 2 * outs * ElementsAt({left.cols}, batch),
          .bytes = 4 * (ElementsAt(a, batch) + ElementsAt(b, batch) + outs)};
}

std::string BatchMatmulLoops(const Graph&, const Node& node) {
  const Transposed transposed(node.attrs);
  return fmt::format("*{},*{}->*mn", transposed.a ? "km" : "mk", transposed.b ? "nk" : "kn");
}

constexpr AttrSpec kAttrs[] = {{.name = "transpose_a", .type = AttrType::kBool},
                               {.name = "transpose_b", .type = AttrType::kBool}};
constexpr OpSpec kSpecs[] = {{.name = "batch_matmul",
                              .infer = InferBatchMatmul,
                              .gradient = BatchMatmulGradient,
                              .cost = BatchMatmulCost,
                              .sharding = {.derive = BatchMatmulLoops, .linear = "&"},
                              .attrs = kAttrs}};

}  // namespace

std::span<const OpSpec> BatchMatmulSpecs() { return kSpecs; }

}  // namespace dt
