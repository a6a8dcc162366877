#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// outer(x [.., P], y [.., Q]): [.., P Q]; element p Q + q of a row is x_p y_q.
Result<SymShape> ProductsOf(const InferContext& context) {
  SymShape out = context.in(0).shape;
  const SymShape& y = context.in(1).shape;
  const bool alike =
      !out.empty() && out.size() == y.size() && std::equal(y.begin(), y.end() - 1, out.begin());
  if (!alike) {
    return Invalid("{}: needs two inputs that agree in all but the last dimension, has {} and {}",
                   context.node.op, context.shape_text(0), context.shape_text(1));
  }
  DT_TRY(out.back(), Product(context, {out.back(), y.back()}, 0, 2));
  return out;
}

Status InferOuter(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  DT_TRY(SymShape out, ProductsOf(context));
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

// outer_grad(x, y, dz): dx, dy.
Status InferOuterGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 3));
  DT_TRY(const SymShape out, ProductsOf(context));
  DT_TRY_STATUS(ExpectShape(context, 2, out, "the gradient"));
  const DType dtype = context.in(0).dtype;
  context.outputs = {Output(dtype, context.in(0).shape), Output(dtype, context.in(1).shape)};
  return OkStatus();
}

Status OuterGradient(GradientContext& context) {
  const std::vector<ValueIndex> inputs = context.node().inputs;
  const auto grads =
      context.Add("outer_grad", {inputs[0], inputs[1], context.output_grad(0)}, {}, 2);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (context.needs_grad(i)) context.SetInputGrad(i, grads[i]);
  }
  return OkStatus();
}

// Also the cost of the gradient, which multiplies twice.
OpCost OuterCost(const Graph& graph, const Node& node, int64_t batch) {
  OpCost cost;
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (const ValueIndex v : *values) {
      const double elements = ElementsAt(graph.value(v).shape, batch);
      cost.bytes += 4 * elements;
      cost.flops = std::max(cost.flops, elements);
    }
  }
  if (node.outputs.size() == 2) cost.flops *= 4;
  return cost;
}

constexpr OpSpec kSpecs[] = {
    {.name = "outer",
     .infer = InferOuter,
     .gradient = OuterGradient,
     .cost = OuterCost,
     .sharding = {.loops = "&*p,&*q->*(pq)"}},
    {.name = "outer_grad",
     .outputs = 2,
     .infer = InferOuterGrad,
     .cost = OuterCost,
     .sharding = {.loops = "*p,*q,&*(pq)->*p,*q"},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> OuterSpecs() { return kSpecs; }

}  // namespace dt
