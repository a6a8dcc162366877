#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// A flag for each dimension: whether `axis` (a number or a list) names it.
Result<std::vector<bool>> Reduced(const InferContext& context) {
  const Node& node = context.node;
  const auto at = node.attrs.find("axis");
  if (at == node.attrs.end()) return Invalid("{}: needs an axis", node.op);
  std::vector<int64_t> axes;
  if (const auto* one = std::get_if<int64_t>(&at->second))
    axes = {*one};
  else
    axes = IntsAttr(node.attrs, "axis");
  const SymShape& shape = context.in(0).shape;
  std::vector<bool> reduced(shape.size(), false);
  for (const int64_t axis : axes) {
    DT_TRY(const size_t i, AxisOf(context, axis, shape.size()));
    if (shape[i].symbol != kConstant) {
      return Invalid("{}: axis {} of {} varies; samples are not mixed in a model", node.op, axis,
                     context.shape_text(0));
    }
    reduced[i] = true;
  }
  return reduced;
}

// reduce_sum(x) and reduce_mean(x): over `axis`; keep_dims keeps reduced dimensions as 1.
Status InferReduce(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  DT_TRY(const std::vector<bool> reduced, Reduced(context));
  const bool keep = BoolAttr(context.node.attrs, "keep_dims", false);
  SymShape out;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i]) out.push_back(context.in(0).shape[i]);
    if (reduced[i] && keep) out.push_back(Const(1));
  }
  if (out.empty()) out.push_back(Const(1));
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

Status ReduceGradient(GradientContext& context) {
  const Node node = context.node();
  const SymShape shape = context.graph().value(node.inputs[0]).shape;
  DT_TRY(const std::vector<bool> reduced, Reduced(InferContext{context.graph(), node, {}}));
  std::vector<int64_t> kept;
  int64_t count = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (reduced[i]) count *= shape[i].times;
    const Dim dim = reduced[i] ? Const(1) : shape[i];
    if (dim.symbol > kBatch) {
      return Invalid("{}: there is no gradient for an input of shape {}", node.op,
                     ShapeText(context.graph(), shape));
    }
    kept.push_back(dim.symbol == kBatch ? -dim.times : dim.times);
  }
  ValueIndex grad = context.output_grad(0);
  if (node.op == "reduce_mean") {
    grad = context.Add("scale", {grad}, {{"factor", 1.0 / static_cast<double>(count)}})[0];
  }
  if (!BoolAttr(node.attrs, "keep_dims", false)) {
    grad = context.Add("reshape", {grad}, {{"shape", std::move(kept)}})[0];
  }
  context.SetInputGrad(0, context.Add("broadcast_to", {grad, node.inputs[0]}, {})[0]);
  return OkStatus();
}

// reduce_batch(x [.., N]): the sum over all dimensions but the last, [N].
Status InferReduceBatch(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  if (context.in(0).shape.empty()) return Invalid("reduce_batch: its input has no dimension");
  context.outputs = {Output(context.in(0).dtype, {context.in(0).shape.back()})};
  return OkStatus();
}

Status ReduceBatchGradient(GradientContext& context) {
  const std::vector<ValueIndex> inputs = {context.output_grad(0), context.node().inputs[0]};
  context.SetInputGrad(0, context.Add("broadcast_to", inputs, {})[0]);
  return OkStatus();
}

// batch_count(x [.., N]): [N], how many rows reduce_batch adds. No gradient flows through.

// reduce_to(x, like): sums x over the dimensions along which `like` would be broadcast to its
// shape; the values of `like` are not read.
Status InferReduceTo(InferContext& context) {
  DT_TRY_STATUS(InferLike(context));
  if (BroadcastsTo(context.in(1).shape, context.in(0).shape)) return OkStatus();
  return Invalid("reduce_to: {} cannot be summed to {}", context.shape_text(0),
                 context.shape_text(1));
}

std::string ReduceLoops(const Graph& graph, const Node& node) {
  const std::vector<bool> reduced = *Reduced(InferContext{graph, node, {}});
  const std::string in = AxesText(std::vector<bool>(reduced.size(), false));
  const bool keep = BoolAttr(node.attrs, "keep_dims", false);
  std::string out;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (!reduced[d]) out += in[d];
    if (reduced[d] && keep) out += '1';
  }
  return in + (node.op == "reduce_mean" ? "->mean " : "->") + (out.empty() ? "1" : out);
}

constexpr AttrSpec kAttrs[] = {{.name = "axis", .type = AttrType::kInts, .required = true},
                               {.name = "keep_dims", .type = AttrType::kBool}};
constexpr OpSpec kSpecs[] = {
    {.name = "reduce_sum",
     .infer = InferReduce,
     .gradient = ReduceGradient,
     .sharding = {.derive = ReduceLoops, .linear = "&"},
     .attrs = kAttrs},
    {.name = "reduce_mean",
     .infer = InferReduce,
     .gradient = ReduceGradient,
     .sharding = {.derive = ReduceLoops, .linear = "&"},
     .attrs = kAttrs},
    {.name = "reduce_batch",
     .infer = InferReduceBatch,
     .gradient = ReduceBatchGradient,
     .sharding = {.loops = "&*n->n"},
     .user_visible = false},
    {.name = "batch_count",
     .infer = InferReduceBatch,
     .sharding = {.loops = "*n->n"},
     .user_visible = false},
    {.name = "reduce_to",
     .infer = InferReduceTo,
     .sharding = {.derive = BroadcastLoops, .linear = "&."},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> ReduceSpecs() { return kSpecs; }

}  // namespace dt
