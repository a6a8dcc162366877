#include <algorithm>

#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// Operators without kernels, which the engine runs by collectives. They are joins: their input is a
// slice value. Those with the same `number` travel together.
//
// sum_slices(x): the sum of x over the step's slices, in slice order, and within a slice over the
// terms that workers of its team hold, in their order.
// gather_slices(x [C]): [slices, C], one row for each slice: the sum of its terms.
Status InferGatherSlices(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  const int64_t slices = IntAttr(context.node.attrs, "slices", 0);
  if (slices < 1) return Invalid("gather_slices: slices is {}", slices);
  SymShape out = context.in(0).shape;
  out.insert(out.begin(), Const(slices));
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

// The symbol S.<table> for a list [U.<table>].
Result<SymbolIndex> StepSymbolOf(const InferContext& context, size_t i) {
  const std::vector<std::string>& symbols = context.graph.symbols;
  const std::string& slice = symbols[context.in(i).shape[0].symbol];
  const auto step = std::ranges::find(symbols, "S" + slice.substr(1));
  if (slice.starts_with("U.") && step != symbols.end()) {
    return static_cast<SymbolIndex>(step - symbols.begin());
  }
  return Invalid("sum_rows: {} are no rows of a table on the worker", context.shape_text(i));
}

// sum_rows(grad [U, dim], numbers [U]): the sums of row gradients over the step's slices [S, dim],
// each row's in slice order; the numbers of these rows [S], by first appearance; and for each row
// the steps since its last update [S], as recorded by its table.
Status InferSumRows(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[rows, dim]"));
  DT_TRY_STATUS(ExpectIndex(context, 1));
  DT_TRY_STATUS(ExpectShape(context, 1, {context.in(0).shape[0]}, "numbers"));
  const int64_t slices = IntAttr(context.node.attrs, "slices", 0);
  if (slices < 1) return Invalid("sum_rows: slices is {}", slices);
  DT_TRY(const SymbolIndex symbol, StepSymbolOf(context, 1));
  const Dim rows{symbol, 1};
  context.outputs = {Output(context.in(0).dtype, {rows, context.in(0).shape[1]}),
                     Output(DType::kU32, {rows}), Output(DType::kU32, {rows})};
  return OkStatus();
}

// The engine's streams also run copy(x), which returns x on the node's device, and refresh(x,
// replica), which writes x to its replica there.
Status InferCopy(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 1));
  context.outputs = {Output(context.in(0).dtype, context.in(0).shape)};
  return OkStatus();
}

Status InferRefresh(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectShape(context, 1, context.in(0).shape, "the replica"));
  context.outputs = {};
  return OkStatus();
}

// share_rows(parameter, part): every worker that has the parameter gets the rows that the others
// have updated. Written in place.
Status InferShareRows(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  context.outputs = {};
  return OkStatus();
}

// share_norms(x1 [O.p1], …): a number for each row of some parameters, from the workers that update
// the rows; `sizes` has the rows of each parameter.
Status InferShareNorms(InferContext& context) {
  const std::vector<int64_t> sizes = IntsAttr(context.node.attrs, "sizes");
  DT_TRY_STATUS(ExpectInputs(context, sizes.size()));
  context.outputs.clear();
  for (size_t i = 0; i < sizes.size(); ++i) {
    DT_TRY_STATUS(ExpectFloat(context, i));
    DT_TRY_STATUS(ExpectRank(context, i, 1, "[rows]"));
    context.outputs.push_back(Output(context.in(i).dtype, {Const(sizes[i])}));
  }
  return OkStatus();
}

// sum_slices with `rows`, the symbol of a parameter's own rows: only they are summed here.
Status InferSumSlices(InferContext& context) {
  DT_TRY_STATUS(InferSame(context));
  const std::string rows = TextAttr(context.node.attrs, "rows", "");
  if (rows.empty()) return OkStatus();
  const std::vector<std::string>& symbols = context.graph.symbols;
  const auto symbol = std::ranges::find(symbols, rows);
  if (symbol == symbols.end()) return Invalid("sum_slices: there is no size \"{}\"", rows);
  context.outputs[0].shape[0] = Dim{static_cast<SymbolIndex>(symbol - symbols.begin()), 1};
  return OkStatus();
}

// `group`: the number of the group of positions that hold the value together, which get the result;
// `terms`: of those of them that hold a term of it. `wire`: bf16, if terms and sums travel so.
constexpr AttrSpec kInTeam[] = {{.name = "number"},
                                {.name = "group"},
                                {.name = "terms"},
                                {.name = "rows", .type = AttrType::kText},
                                {.name = "wire", .type = AttrType::kText}};
constexpr AttrSpec kShared[] = {{.name = "group"}, {.name = "number"}};
constexpr AttrSpec kNorms[] = {
    {.name = "group"}, {.name = "number"}, {.name = "sizes", .type = AttrType::kInts}};
constexpr AttrSpec kSlices[] = {
    {.name = "number"}, {.name = "slices", .required = true}, {.name = "group"}, {.name = "terms"}};
constexpr OpSpec kSpecs[] = {
    {.name = "copy",
     .infer = InferCopy,
     .sharding = {.loops = "*->*"},
     .user_visible = false,
     .takes_bf16 = true,
     .traits = {.kind = OpKind::kCopy}},
    {.name = "refresh",
     .outputs = 0,
     .infer = InferRefresh,
     .sharding = {.loops = "*,*->"},
     .user_visible = false,
     .traits = {.kind = OpKind::kCopy, .writes = {1}}},
    {.name = "share_rows",
     .outputs = 0,
     .infer = InferShareRows,
     .sharding = {.loops = "~,~->"},
     .user_visible = false,
     .attrs = kShared,
     .traits = {.kind = OpKind::kCommunication, .writes = {0}}},
    {.name = "share_norms",
     .outputs = kVariableOutputs,
     .infer = InferShareNorms,
     .sharding = {.derive = UncutLoops},
     .user_visible = false,
     .attrs = kNorms,
     .traits = {.kind = OpKind::kCommunication}},
    {.name = "sum_slices",
     .infer = InferSumSlices,
     .sharding = {.loops = "*->*"},
     .user_visible = false,
     .attrs = kInTeam,
     .traits = {.kind = OpKind::kCommunication}},
    {.name = "gather_slices",
     .infer = InferGatherSlices,
     .sharding = {.loops = "*->S*"},
     .user_visible = false,
     .attrs = kSlices,
     .traits = {.kind = OpKind::kCommunication}},
    {.name = "sum_rows",
     .outputs = 3,
     .infer = InferSumRows,
     .sharding = {.loops = "Ud,U->Sd,same S,same S"},
     .user_visible = false,
     .attrs = kSlices,
     .traits = {.kind = OpKind::kCommunication}},
};

}  // namespace

std::span<const OpSpec> CommunicationSpecs() { return kSpecs; }

}  // namespace dt
