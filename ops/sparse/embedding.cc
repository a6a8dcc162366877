#include <numeric>

#include "ops/infer.h"
#include "ops/op_families.h"

// Rows of a dense weight by their ids.
namespace dt {
namespace {

constexpr size_t kWeightIn = 0, kIdsIn = 1;

// Number of rows for each position of the ids, if each has rows of its own; empty: all share them.
std::vector<int64_t> SplitOf(const Node& node) { return IntsAttr(node.attrs, "manual_split"); }

// `rows`: of the weight.
Status CheckSplit(const InferContext& context, const SymShape& ids, const Dim& rows) {
  const std::vector<int64_t> split = SplitOf(context.node);
  if (split.empty()) return OkStatus();
  if (ids.empty() || ids.back() != Const(std::ssize(split))) {
    return Invalid(
        "{}: manual_split gives the rows of {} fields, which is not the last dimension "
        "of the ids",
        context.node.op, split.size());
  }
  for (const int64_t n : split) {
    if (n < 0) return Invalid("{}: a field of manual_split has {} rows", context.node.op, n);
  }
  const int64_t sum = std::accumulate(split.begin(), split.end(), int64_t{0});
  if (rows == Const(sum)) return OkStatus();
  return Invalid("{}: the fields of manual_split have {} rows together, and the weight has {}",
                 context.node.op, sum, ShapeText(context.graph, {rows}));
}

// embedding(weight [rows, D], ids u32 [..]): [.., D], the rows that the ids name; zeros for an id
// that names none. If this is a part of the rows, it begins at `first` of `whole` rows. With
// `manual_split`, the last dimension of the ids are fields, and the weight has the rows of field 0,
// then those of field 1, and so on: an id counts within its field.
Status InferEmbedding(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectFloat(context, kWeightIn));
  DT_TRY_STATUS(ExpectRank(context, kWeightIn, 2, "[rows, dim]"));
  DT_TRY_STATUS(ExpectIndex(context, kIdsIn));
  const SymShape& weight = context.in(kWeightIn).shape;
  SymShape out = context.in(kIdsIn).shape;
  DT_TRY_STATUS(CheckSplit(context, out, weight[0]));
  out.push_back(weight[1]);
  context.outputs = {Output(context.in(kWeightIn).dtype, std::move(out))};
  return OkStatus();
}

Status EmbeddingGradient(GradientContext& context) {
  if (!context.needs_grad(kWeightIn)) return OkStatus();
  const Node& node = context.node();
  Attrs attrs = node.attrs;
  attrs["rows"] = context.graph().value(node.inputs[kWeightIn]).shape[0].times;
  const std::vector<ValueIndex> inputs = {node.inputs[kIdsIn], context.output_grad(0)};
  context.SetInputGrad(kWeightIn, context.Add("embedding_grad", inputs, std::move(attrs))[0]);
  return OkStatus();
}

// embedding_grad(ids, dy [.., D]): the gradient of the weight's `rows` rows. The gradients of a row
// are added in the order of its ids.
Status InferEmbeddingGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectIndex(context, 0));
  DT_TRY_STATUS(ExpectFloat(context, 1));
  const SymShape& ids = context.in(0).shape;
  SymShape dy = ids;
  if (context.in(1).shape.empty()) return Invalid("embedding_grad: the gradient has no columns");
  dy.push_back(context.in(1).shape.back());
  DT_TRY_STATUS(ExpectShape(context, 1, dy, "the gradient"));
  const Dim rows = Const(IntAttr(context.node.attrs, "rows", 0));
  DT_TRY_STATUS(CheckSplit(context, ids, rows));
  context.outputs = {Output(context.in(1).dtype, {rows, dy.back()})};
  return OkStatus();
}

std::string EmbeddingLoops(const Graph&, const Node& node) {
  if (SplitOf(node).empty()) return "rd,#r*->*d|first=r,order=*rd,table=rd";
  return "f'd,*f->*fd|manual_split=f',order=*fd,table=fd";
}
std::string EmbeddingGradLoops(const Graph&, const Node& node) {
  if (SplitOf(node).empty()) return "#r*,*d->rd|rows=r,first=r,order=*rd";
  return "*f,*fd->f'd|manual_split=f',order=*fd";
}

constexpr AttrSpec kAttrs[] = {{.name = "manual_split", .type = AttrType::kInts},
                               {.name = "first", .type = AttrType::kInts},
                               {.name = "whole", .type = AttrType::kInts}};
constexpr AttrSpec kGradAttrs[] = {{.name = "rows", .required = true},
                                   {.name = "manual_split", .type = AttrType::kInts},
                                   {.name = "first", .type = AttrType::kInts},
                                   {.name = "whole", .type = AttrType::kInts}};
// Users write the composite `embedding`, which makes the weight.
constexpr OpSpec kSpecs[] = {
    {.name = "embedding",
     .infer = InferEmbedding,
     .gradient = EmbeddingGradient,
     .sharding = {.derive = EmbeddingLoops, .linear = "&."},
     .user_visible = false,
     .attrs = kAttrs},
    {.name = "embedding_grad",
     .infer = InferEmbeddingGrad,
     .sharding = {.derive = EmbeddingGradLoops, .linear = ".&"},
     .user_visible = false,
     .attrs = kGradAttrs},
};

}  // namespace

std::span<const OpSpec> EmbeddingSpecs() { return kSpecs; }

}  // namespace dt
