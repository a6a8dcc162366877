#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// top_k(x [.., N]): the k largest elements of each row, largest first, [.., k], and their
// positions, u32 [.., k]. Among equal elements the earlier one comes first; NaN counts as minus
// infinity.
Status InferTopK(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  SymShape out = context.in(0).shape;
  const int64_t k = IntAttr(context.node.attrs, "k", 0);
  if (out.empty() || out.back().symbol != kConstant || k < 1 || k > out.back().times) {
    return Invalid("top_k: k is {}, expected 1 or more and at most the last dimension of {}", k,
                   context.shape_text(0));
  }
  out.back() = Const(k);
  context.outputs = {Output(context.in(0).dtype, out), Output(DType::kU32, out)};
  return OkStatus();
}

// top_k_grad(positions, dy): rows of `size` with dy at the positions it was taken from, 0
// elsewhere.
Status InferTopKGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectIndex(context, 0));
  DT_TRY_STATUS(ExpectFloat(context, 1));
  SymShape out = context.in(1).shape;
  DT_TRY_STATUS(ExpectShape(context, 0, out, "the positions"));
  const int64_t size = IntAttr(context.node.attrs, "size", 0);
  if (out.empty() || size < out.back().times) {
    return Invalid("top_k_grad: rows of {} do not hold {}", size, context.shape_text(1));
  }
  out.back() = Const(size);
  context.outputs = {Output(context.in(1).dtype, std::move(out))};
  return OkStatus();
}

// Positions have no gradient.
Status TopKGradient(GradientContext& context) {
  if (context.output_grad(0) == kNone) return OkStatus();
  const Node& node = context.node();
  const int64_t size = context.graph().value(node.inputs[0]).shape.back().times;
  const std::vector<ValueIndex> inputs = {node.outputs[1], context.output_grad(0)};
  context.SetInputGrad(0, context.Add("top_k_grad", inputs, {{"size", size}})[0]);
  return OkStatus();
}

OpCost TopKCost(const Graph& graph, const Node& node, int64_t batch) {
  const double in = ElementsAt(graph.value(node.inputs[0]).shape, batch);
  const double out = ElementsAt(graph.value(node.outputs[0]).shape, batch);
  const auto k = static_cast<double>(IntAttr(node.attrs, "k", 1));
  return {.flops = in * k, .bytes = 4 * (in + 2 * out)};
}

constexpr AttrSpec kAttrs[] = {{.name = "k", .required = true}};
constexpr AttrSpec kGradAttrs[] = {{.name = "size", .required = true}};
constexpr OpSpec kSpecs[] = {
    {.name = "top_k",
     .outputs = 2,
     .infer = InferTopK,
     .gradient = TopKGradient,
     .cost = TopKCost,
     .sharding = {.loops = "*N->*K,*K"},
     .attrs = kAttrs},
    {.name = "top_k_grad",
     .infer = InferTopKGrad,
     .sharding = {.loops = "*K,*K->*N"},
     .user_visible = false,
     .attrs = kGradAttrs},
};

}  // namespace

std::span<const OpSpec> TopKSpecs() { return kSpecs; }

}  // namespace dt
