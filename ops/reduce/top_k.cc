#include "common/layout/layout.h"
#include "ops/infer.h"
#include "ops/op_families.h"
#include "ops/reduce/top_lists.h"

namespace dt {
namespace {

// top_k(x [.., N]): the k largest elements of each row, largest first, [.., k], and their
// positions, u32 [.., k]. Among equal elements the earlier one comes first; NaN counts as minus
// infinity.
// With `lists`, lengths whose sum is N, a row is lists one behind the other, and each list has k
// largest elements of its own, [.., lists, k], with their positions in the list. A list of fewer
// elements is filled up with zeros, whose position is the length of the list.
Status InferTopK(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  SymShape out = context.in(0).shape;
  const int64_t k = IntAttr(context.node.attrs, "k", 0);
  const TopLists lists(context.node.attrs, out.empty() ? 0 : out.back().times);
  const bool constant = !out.empty() && out.back().symbol == kConstant;
  if (!constant || k < 1 || (!lists.given() && k > out.back().times)) {
    return Invalid("top_k: k is {}, expected 1 or more and at most the last dimension of {}", k,
                   context.shape_text(0));
  }
  if (!lists.Fill(out.back().times)) {
    return Invalid("top_k: the lists do not fill the last dimension of {}", context.shape_text(0));
  }
  if (lists.given()) out.back() = Const(std::ssize(lists.lengths()));
  if (lists.given()) out.emplace_back();
  out.back() = Const(k);
  context.outputs = {Output(context.in(0).dtype, out), Output(DType::kU32, out)};
  return OkStatus();
}

// top_k_grad(positions, dy): rows of `size`, or `lists`, with dy at the positions it was taken
// from, 0 elsewhere.
Status InferTopKGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectIndex(context, 0));
  DT_TRY_STATUS(ExpectFloat(context, 1));
  SymShape out = context.in(1).shape;
  DT_TRY_STATUS(ExpectShape(context, 0, out, "the positions"));
  const TopLists lists(context.node.attrs, IntAttr(context.node.attrs, "size", 0));
  if (lists.given()) {
    if (out.size() < 2 || out[out.size() - 2] != Const(std::ssize(lists.lengths()))) {
      return Invalid("top_k_grad: {} are not of {} lists", context.shape_text(1),
                     lists.lengths().size());
    }
    out.pop_back();
  } else if (out.empty() || lists.size() < out.back().times) {
    return Invalid("top_k_grad: rows of {} do not hold {}", lists.size(), context.shape_text(1));
  }
  out.back() = Const(lists.size());
  context.outputs = {Output(context.in(1).dtype, std::move(out))};
  return OkStatus();
}

// Positions have no gradient.
Status TopKGradient(GradientContext& context) {
  if (context.output_grad(0) == kNone) return OkStatus();
  const Node& node = context.node();
  const std::vector<ValueIndex> inputs = {node.outputs[1], context.output_grad(0)};
  Attrs attrs;
  if (const auto lists = node.attrs.find("lists"); lists != node.attrs.end()) {
    attrs.insert(*lists);
  } else {
    attrs["size"] = context.graph().value(node.inputs[0]).shape.back().times;
  }
  context.SetInputGrad(0, context.Add("top_k_grad", inputs, std::move(attrs))[0]);
  return OkStatus();
}

// merge_top_k(largest [.., P, m], positions [.., P, m]): the k largest of a row [.., size], and
// their positions, of the largest of its P even parts, as top_k of `lists` gives them.
Status CheckParts(const InferContext& context, size_t positions) {
  const SymShape& shape = context.in(positions).shape;
  DT_TRY_STATUS(ExpectIndex(context, positions));
  const size_t rank = shape.size();
  const bool constant = rank >= 2 && shape[rank - 1].symbol == kConstant &&
                        shape[rank - 2].symbol == kConstant && shape[rank - 2].times > 0;
  const int64_t size = IntAttr(context.node.attrs, "size", 0);
  if (constant && size >= 0) return OkStatus();
  return Invalid("{}: {} are not the largest of parts of {}", context.node.op,
                 context.shape_text(positions), size);
}

Status InferMergeTopK(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectShape(context, 1, context.in(0).shape, "the positions"));
  DT_TRY_STATUS(CheckParts(context, 1));
  SymShape out = context.in(0).shape;
  const int64_t k = IntAttr(context.node.attrs, "k", 0);
  const int64_t size = IntAttr(context.node.attrs, "size", 0);
  if (k < 1 || k > out.back().times || k > size) {
    return Invalid("merge_top_k: k is {}, and {} of {} are given", k, out.back().times, size);
  }
  out.pop_back();
  out.back() = Const(k);
  context.outputs = {Output(context.in(0).dtype, out), Output(DType::kU32, out)};
  return OkStatus();
}

// merge_top_k_grad(positions [.., P, m], chosen [.., k], dy [.., k]): [.., P, m], dy where the
// chosen ones were, 0 elsewhere.
Status InferMergeTopKGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 3));
  DT_TRY_STATUS(CheckParts(context, 0));
  DT_TRY_STATUS(ExpectIndex(context, 1));
  DT_TRY_STATUS(ExpectFloat(context, 2));
  DT_TRY_STATUS(ExpectShape(context, 1, context.in(2).shape, "the chosen positions"));
  SymShape rows = context.in(0).shape;
  rows.pop_back();
  rows.back() = context.in(2).shape.empty() ? Const(0) : context.in(2).shape.back();
  DT_TRY_STATUS(ExpectShape(context, 2, rows, "the gradient"));
  context.outputs = {Output(context.in(2).dtype, context.in(0).shape)};
  return OkStatus();
}

Status MergeTopKGradient(GradientContext& context) {
  if (context.output_grad(0) == kNone) return OkStatus();
  const Node& node = context.node();
  const std::vector<ValueIndex> inputs = {node.inputs[1], node.outputs[1], context.output_grad(0)};
  const Attrs attrs = {{"size", IntAttr(node.attrs, "size", 0)}};
  context.SetInputGrad(0, context.Add("merge_top_k_grad", inputs, attrs)[0]);
  return OkStatus();
}

// Each device finds the largest of its part, and all of them choose among these.
void TopKByParts(PartsContext& context) {
  const Node node = context.node();
  const SymShape shape = context.graph().value(node.inputs[0]).shape;
  const int64_t size = shape.back().times, parts = context.parts_of(0, shape.size() - 1);
  std::vector<int64_t> lists;
  for (int64_t p = 0; p < parts; ++p) lists.push_back(EvenPart({0, size}, parts, p).size());
  Attrs of_lists = node.attrs, merged = node.attrs;
  of_lists["lists"] = lists;
  merged["size"] = size;
  const ValueIndex largest = context.Add("top_k", {node.inputs[0]}, of_lists);
  context.Add("merge_top_k", {largest, largest + 1}, merged);
}

std::string TopKLoops(const Graph&, const Node& node) {
  return node.attrs.contains("lists") ? "*p'->*pK,*pK|lists=p'" : "*N->same *K,same *K";
}
std::string TopKGradLoops(const Graph&, const Node& node) {
  return node.attrs.contains("lists") ? "*pK,*pK->*p'|lists=p'" : "*K,*K->*N";
}

OpCost TopKCost(const Graph& graph, const Node& node, int64_t batch) {
  const double in = ElementsAt(graph.value(node.inputs[0]).shape, batch);
  const double out = ElementsAt(graph.value(node.outputs[0]).shape, batch);
  const auto k = static_cast<double>(IntAttr(node.attrs, "k", 1));
  return {.flops = in * k, .bytes = 4 * (in + 2 * out)};
}

constexpr AttrSpec kLists = {.name = "lists", .type = AttrType::kInts};
constexpr AttrSpec kAttrs[] = {{.name = "k", .required = true}, kLists};
constexpr AttrSpec kGradAttrs[] = {{.name = "size"}, kLists};
constexpr AttrSpec kMergeAttrs[] = {{.name = "k", .required = true},
                                    {.name = "size", .required = true}};
constexpr AttrSpec kMergeGradAttrs[] = {{.name = "size", .required = true}};
constexpr OpSpec kSpecs[] = {
    {.name = "top_k",
     .outputs = 2,
     .infer = InferTopK,
     .gradient = TopKGradient,
     .by_parts = TopKByParts,
     .cost = TopKCost,
     .sharding = {.derive = TopKLoops},
     .attrs = kAttrs},
    {.name = "top_k_grad",
     .infer = InferTopKGrad,
     .sharding = {.derive = TopKGradLoops},
     .user_visible = false,
     .attrs = kGradAttrs},
    {.name = "merge_top_k",
     .outputs = 2,
     .infer = InferMergeTopK,
     .gradient = MergeTopKGradient,
     .sharding = {.loops = "*PM,*PM->*K,*K"},
     .user_visible = false,
     .attrs = kMergeAttrs},
    {.name = "merge_top_k_grad",
     .infer = InferMergeTopKGrad,
     .sharding = {.loops = "*PM,*K,*K->*PM"},
     .user_visible = false,
     .attrs = kMergeGradAttrs},
};

}  // namespace

std::span<const OpSpec> TopKSpecs() { return kSpecs; }

}  // namespace dt
