#include <string>

#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// bag(rows [U, D], index [N], row_ends [U], row_order [N], ends [B] if `ragged`, weights [N] if
// `weighted`): [B, D], the rows of each sample's ids, combined. Without ends each sample has
// `length` ids. `combiner`: sum; mean, which divides by the count (or the sum of weights); sqrtn,
// which divides by the root of the count (or of the sum of squared weights). A sample without ids,
// or with a divisor of 0, gives zeros.
struct BagInputs {
  bool ragged, weighted;
  size_t count;
  explicit BagInputs(const Attrs& attrs, size_t fixed)
      : ragged(BoolAttr(attrs, "ragged", false)),
        weighted(BoolAttr(attrs, "weighted", false)),
        count(fixed + (ragged ? 1 : 0) + (weighted ? 1 : 0)) {}
};

Status CheckCombiner(const InferContext& context) {
  const std::string combiner = TextAttr(context.node.attrs, "combiner", "sum");
  if (combiner == "sum" || combiner == "mean" || combiner == "sqrtn") return OkStatus();
  return Invalid("{}: combiner \"{}\" is none of sum, mean, sqrtn", context.node.op, combiner);
}

// Checks ends and weights, which follow the first `fixed` inputs.
Status CheckOptional(const InferContext& context, size_t fixed, const SymShape& index) {
  const BagInputs has(context.node.attrs, fixed);
  size_t at = fixed;
  if (has.ragged) {
    DT_TRY_STATUS(ExpectIndex(context, at));
    DT_TRY_STATUS(ExpectRank(context, at++, 1, "a list"));
  }
  if (has.weighted) {
    DT_TRY_STATUS(ExpectFloat(context, at));
    DT_TRY_STATUS(ExpectShape(context, at, index, "weights"));
  }
  return OkStatus();
}

Result<Dim> SamplesOf(const InferContext& context, const Dim& index, size_t ends_at) {
  if (BoolAttr(context.node.attrs, "ragged", false)) return context.in(ends_at).shape[0];
  const int64_t length = IntAttr(context.node.attrs, "length", 1);
  if (length < 1 || index.times % length != 0 || index.symbol > kBatch) {
    return Invalid("bag: an index of {} is not {} ids for each sample",
                   ShapeText(context.graph, {index}), length);
  }
  return Dim{index.symbol, index.times / length};
}

Status InferBag(InferContext& context) {
  DT_TRY_STATUS(CheckCombiner(context));
  DT_TRY_STATUS(ExpectInputs(context, BagInputs(context.node.attrs, 4).count));
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[rows, dim]"));
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}}) {
    DT_TRY_STATUS(ExpectIndex(context, i));
    DT_TRY_STATUS(ExpectRank(context, i, 1, "a list"));
  }
  const SymShape& rows = context.in(0).shape;
  const SymShape& index = context.in(1).shape;
  DT_TRY_STATUS(ExpectShape(context, 2, {rows[0]}, "row_ends"));
  DT_TRY_STATUS(ExpectShape(context, 3, index, "row_order"));
  DT_TRY_STATUS(CheckOptional(context, 4, index));
  DT_TRY(const Dim samples, SamplesOf(context, index[0], 4));
  context.outputs = {Output(context.in(0).dtype, {samples, rows[1]})};
  return OkStatus();
}

Status BagGradient(GradientContext& context) {
  if (!context.needs_grad(0)) return OkStatus();
  const std::vector<ValueIndex> forward = context.node().inputs;
  std::vector<ValueIndex> inputs = {context.output_grad(0)};
  inputs.insert(inputs.end(), forward.begin() + 2, forward.end());
  const Attrs attrs = context.node().attrs;
  context.SetInputGrad(0, context.Add("bag_grad", std::move(inputs), attrs)[0]);
  return OkStatus();
}

// bag_grad(dy [B, D], row_ends [U], row_order [N], ends if `ragged`, weights if `weighted`): the
// gradient of rows, [U, D].
Status InferBagGrad(InferContext& context) {
  DT_TRY_STATUS(CheckCombiner(context));
  DT_TRY_STATUS(ExpectInputs(context, BagInputs(context.node.attrs, 3).count));
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[B, dim]"));
  for (const size_t i : {size_t{1}, size_t{2}}) {
    DT_TRY_STATUS(ExpectIndex(context, i));
    DT_TRY_STATUS(ExpectRank(context, i, 1, "a list"));
  }
  DT_TRY_STATUS(CheckOptional(context, 3, context.in(2).shape));
  context.outputs = {Output(context.in(0).dtype, {context.in(1).shape[0], context.in(0).shape[1]})};
  return OkStatus();
}

// The ids of one sample may be divided among devices only if their rows are just added.
std::string BagLoops(const Graph&, const Node& node) {
  const bool is_grad = node.op == "bag_grad";
  if (BoolAttr(node.attrs, "ragged", false)) {
    return is_grad ? "&bd,@$,@b',^b,b'->$d" : "&$d,b',@$,@b',^b,b'->bd|order=bd";
  }
  const char l = TextAttr(node.attrs, "combiner", "sum") == "sum" ? 'l' : 'L';
  const std::string lists = fmt::format("@$,@(b{0}),(b{0})", l);
  if (is_grad) return fmt::format("&bd,{}->$d|length={}", lists, l);
  return fmt::format("&$d,(b{0}),{1}->bd|length={0},order=b{0}d", l, lists);
}

constexpr AttrSpec kAttrs[] = {{.name = "length"},
                               {.name = "ragged", .type = AttrType::kBool},
                               {.name = "weighted", .type = AttrType::kBool},
                               {.name = "combiner", .type = AttrType::kText}};
// Users write the composites `bag` and `linear`, which expand to it.
constexpr OpSpec kSpecs[] = {
    {.name = "bag",
     .infer = InferBag,
     .gradient = BagGradient,
     .sharding = {.derive = BagLoops},
     .user_visible = false,
     .attrs = kAttrs},
    {.name = "bag_grad",
     .infer = InferBagGrad,
     .sharding = {.derive = BagLoops},
     .user_visible = false,
     .attrs = kAttrs},
};

}  // namespace

std::span<const OpSpec> BagSpecs() { return kSpecs; }

}  // namespace dt
