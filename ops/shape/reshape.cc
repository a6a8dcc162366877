#include <algorithm>

#include "common/graph/shape_bounds.h"
#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// reshape(x): the attribute `shape`, in which -1 means B and -k means k times B.
Status InferReshape(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  const std::vector<int64_t> wanted = IntsAttr(context.node.attrs, "shape");
  SymShape out;
  for (const int64_t size : wanted) {
    const int64_t n = std::clamp(size, -kElementsMax - 1, kElementsMax + 1);
    out.push_back(n < 0 ? Dim{kBatch, -n} : Const(n));
  }
  if (out.empty() || out.size() > kMaxRank || std::ranges::count(wanted, 0) > 0 ||
      !IsWithinBounds(out)) {
    return Invalid("reshape: {} is no shape; 1 to {} dimensions, -1 for the batch",
                   ShapeText(context.graph, out), kMaxRank);
  }
  const SymShape& shape = context.in(0).shape;
  DT_TRY(const Dim has, Product(context, shape, 0, shape.size()));
  DT_TRY(const Dim gives, Product(context, out, 0, out.size()));
  if (has != gives) {
    return Invalid("reshape: {} does not hold as many elements as {}",
                   ShapeText(context.graph, out), context.shape_text(0));
  }
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

// flatten(x): [B, …] becomes [B, product of the rest].
Status InferFlatten(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  const SymShape& shape = context.in(0).shape;
  if (shape.empty()) return Invalid("flatten: its input has no dimension");
  DT_TRY(const Dim rest, Product(context, shape, 1, shape.size()));
  context.outputs = {Output(context.in(0).dtype, {shape.front(), rest})};
  return OkStatus();
}

Result<Attrs> ShapeAttrs(const Graph& graph, const SymShape& shape) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : shape) {
    if (dim.symbol != kConstant && dim.symbol != kBatch) {
      return Invalid("reshape: there is no gradient for an input of shape {}",
                     ShapeText(graph, shape));
    }
    sizes.push_back(dim.symbol == kBatch ? -dim.times : dim.times);
  }
  return Attrs{{"shape", std::move(sizes)}};
}

// The gradient of reshape and flatten.
Status ReshapeGradient(GradientContext& context) {
  const Graph& graph = context.graph();
  DT_TRY(Attrs attrs, ShapeAttrs(graph, graph.value(context.node().inputs[0]).shape));
  context.SetInputGrad(0, context.Add("reshape", {context.output_grad(0)}, std::move(attrs))[0]);
  return OkStatus();
}

// transpose(x): dimension i of the result is dimension perm[i] of x.
Status InferTranspose(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  const std::vector<int64_t> perm = IntsAttr(context.node.attrs, "perm");
  const SymShape& shape = context.in(0).shape;
  std::vector<int64_t> sorted = perm;
  std::ranges::sort(sorted);
  bool fits = sorted.size() == shape.size();
  for (size_t i = 0; fits && i < sorted.size(); ++i) fits = sorted[i] == static_cast<int64_t>(i);
  if (!fits) {
    return Invalid("transpose: perm must name each of the {} dimensions of {} once", shape.size(),
                   context.shape_text(0));
  }
  SymShape out;
  for (const int64_t from : perm) out.push_back(shape[static_cast<size_t>(from)]);
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

Status TransposeGradient(GradientContext& context) {
  const std::vector<int64_t> perm = IntsAttr(context.node().attrs, "perm");
  std::vector<int64_t> back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  context.SetInputGrad(
      0, context.Add("transpose", {context.output_grad(0)}, {{"perm", std::move(back)}})[0]);
  return OkStatus();
}

// broadcast_to(x, like): x broadcast to the shape of `like`, whose values are not read.
Status InferBroadcastTo(InferContext& context) {
  DT_TRY_STATUS(InferLike(context));
  if (BroadcastsTo(context.in(0).shape, context.in(1).shape)) return OkStatus();
  return Invalid("broadcast_to: {} cannot be repeated to {}", context.shape_text(0),
                 context.shape_text(1));
}

Status BroadcastToGradient(GradientContext& context) {
  const ValueIndex input = context.node().inputs[0];
  if (!context.needs_grad(0)) return OkStatus();
  context.SetInputGrad(0, context.Add("reduce_to", {context.output_grad(0), input}, {})[0]);
  return OkStatus();
}

// fill(): a tensor of `shape` (constant dimensions) whose elements are all `value`; f32.
Status InferFill(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 0));
  SymShape out;
  for (const int64_t n : IntsAttr(context.node.attrs, "shape")) {
    if (n < 1) return Invalid("fill: {} is no constant dimension", n);
    out.push_back(Const(n));
  }
  if (out.empty() || out.size() > kMaxRank) {
    return Invalid("fill: needs a shape of 1 to {} dimensions", kMaxRank);
  }
  context.outputs = {Output(DType::kF32, std::move(out))};
  return OkStatus();
}

std::string TransposeLoops(const Graph& graph, const Node& node) {
  const std::string in =
      AxesText(std::vector<bool>(graph.value(node.inputs[0]).shape.size(), false));
  std::string out;
  for (const int64_t from : IntsAttr(node.attrs, "perm")) out += in[static_cast<size_t>(from)];
  return in + "->" + out;
}

std::string FillLoops(const Graph& graph, const Node& node) {
  const std::string out =
      AxesText(std::vector<bool>(graph.value(node.outputs[0]).shape.size(), false));
  return "->" + out + "|shape=" + out;
}

constexpr AttrSpec kFill[] = {{.name = "shape", .type = AttrType::kInts, .required = true},
                              {.name = "value", .type = AttrType::kFloat}};
constexpr AttrSpec kShape[] = {{.name = "shape", .type = AttrType::kInts, .required = true}};
constexpr AttrSpec kPerm[] = {{.name = "perm", .type = AttrType::kInts, .required = true}};
constexpr OpSpec kSpecs[] = {
    {.name = "reshape",
     .infer = InferReshape,
     .gradient = ReshapeGradient,
     .sharding = {.derive = RegroupedLoops, .linear = "&"},
     .attrs = kShape,
     .traits = {.same_bytes = true}},
    {.name = "flatten",
     .infer = InferFlatten,
     .gradient = ReshapeGradient,
     .sharding = {.derive = RegroupedLoops, .linear = "&"},
     .traits = {.same_bytes = true}},
    {.name = "transpose",
     .infer = InferTranspose,
     .gradient = TransposeGradient,
     .sharding = {.derive = TransposeLoops, .linear = "&"},
     .attrs = kPerm},
    {.name = "broadcast_to",
     .infer = InferBroadcastTo,
     .gradient = BroadcastToGradient,
     .sharding = {.derive = BroadcastLoops, .linear = "&."}},
    {.name = "fill",
     .infer = InferFill,
     .sharding = {.derive = FillLoops},
     .user_visible = false,
     .attrs = kFill},
};

}  // namespace

std::span<const OpSpec> ReshapeSpecs() { return kSpecs; }

}  // namespace dt
