#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// cin_layer(x [.., P], y [.., Q], w [P Q, N]): [.., N], the matrix product of outer(x, y) and w,
// without storing the P Q products of all rows. It is a layer of xDeepFM's interaction network;
// rows are elements of the embeddings, columns are fields.
Status CheckInputs(const InferContext& context) {
  const SymShape &x = context.in(0).shape, &y = context.in(1).shape;
  const bool alike =
      !x.empty() && x.size() == y.size() && std::equal(y.begin(), y.end() - 1, x.begin());
  if (!alike || x.back().symbol != kConstant || y.back().symbol != kConstant) {
    return Invalid(
        "{}: needs two inputs that agree in all but a constant last dimension, has {} and {}",
        context.node.op, context.shape_text(0), context.shape_text(1));
  }
  const SymShape& w = context.in(2).shape;
  if (w.size() == 2 && w[0] == Const(x.back().times * y.back().times)) return OkStatus();
  return Invalid("{}: w must be [{}, units], is {}", context.node.op,
                 x.back().times * y.back().times, context.shape_text(2));
}

SymShape ResultOf(const InferContext& context) {
  SymShape out = context.in(0).shape;
  out.back() = context.in(2).shape[1];
  return out;
}

Status InferCinLayer(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 3));
  DT_TRY_STATUS(CheckInputs(context));
  context.outputs = {Output(context.in(0).dtype, ResultOf(context))};
  return OkStatus();
}

// cin_layer_grad(x, y, w, dz): dx, dy, dw. Computes the products again.
Status InferCinLayerGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 4));
  DT_TRY_STATUS(CheckInputs(context));
  DT_TRY_STATUS(ExpectShape(context, 3, ResultOf(context), "the gradient"));
  context.outputs.clear();
  for (size_t i = 0; i < 3; ++i) {
    context.outputs.push_back(Output(context.in(i).dtype, context.in(i).shape));
  }
  return OkStatus();
}

Status CinLayerGradient(GradientContext& context) {
  std::vector<ValueIndex> inputs = context.node().inputs;
  inputs.push_back(context.output_grad(0));
  const auto grads = context.Add("cin_layer_grad", std::move(inputs), {}, 3);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (context.needs_grad(i)) context.SetInputGrad(i, grads[i]);
  }
  return OkStatus();
}

OpCost CinLayerCost(const Graph& graph, const Node& node, int64_t batch) {
  const SymShape& w = graph.value(node.inputs[2]).shape;
  const SymShape& x = graph.value(node.inputs[0]).shape;
  const double rows = ElementsAt(x, batch) / static_cast<double>(x.back().times);
  const bool is_grad = node.inputs.size() == 4;
  const double products = rows * static_cast<double>(w[0].times);
  OpCost cost;
  cost.flops = products * (is_grad ? 4.0 * static_cast<double>(w[1].times) + 5
                                   : 2.0 * static_cast<double>(w[1].times) + 1);
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (const ValueIndex v : *values) cost.bytes += 4 * ElementsAt(graph.value(v).shape, batch);
  }
  return cost;
}

constexpr OpSpec kSpecs[] = {
    {.name = "cin_layer",
     .infer = InferCinLayer,
     .gradient = CinLayerGradient,
     .cost = CinLayerCost,
     .sharding = {.loops = "&*p,&*q,&(pq)n->*n"},
     .user_visible = false},
    {.name = "cin_layer_grad",
     .outputs = 3,
     .infer = InferCinLayerGrad,
     .cost = CinLayerCost,
     .sharding = {.loops = "*p,*q,(pq)n,&*n->*p,*q,(pq)n"},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> CinLayerSpecs() { return kSpecs; }

}  // namespace dt
