#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// gather_rows(rows [U, D], index [B × L], row_ends [U], row_order [B × L], weights [B × L] if
// `weighted`): [B, L, D], the rows named by the index, each times its weight. `length` is L. If
// `ragged`, lists vary in length: the index is [N], and the result [N, D].
// row_ends and row_order list the uses of each row; the gradient sums them in ascending order.
constexpr size_t kRowsIn = 0, kIndexIn = 1, kRowEndsIn = 2, kRowOrderIn = 3, kWeightsIn = 4;

Status InferGatherRows(InferContext& context) {
  const bool weighted = BoolAttr(context.node.attrs, "weighted", false);
  DT_TRY_STATUS(ExpectInputs(context, weighted ? 5 : 4));
  DT_TRY_STATUS(ExpectFloat(context, kRowsIn));
  DT_TRY_STATUS(ExpectRank(context, kRowsIn, 2, "[rows, dim]"));
  for (const size_t i : {kIndexIn, kRowEndsIn, kRowOrderIn}) {
    DT_TRY_STATUS(ExpectIndex(context, i));
    DT_TRY_STATUS(ExpectRank(context, i, 1, "a list"));
  }
  const SymShape& rows = context.in(kRowsIn).shape;
  const SymShape index = context.in(kIndexIn).shape;
  DT_TRY_STATUS(ExpectShape(context, kRowEndsIn, {rows[0]}, "row_ends"));
  DT_TRY_STATUS(ExpectShape(context, kRowOrderIn, index, "row_order"));
  if (weighted) {
    DT_TRY_STATUS(ExpectFloat(context, kWeightsIn));
    DT_TRY_STATUS(ExpectShape(context, kWeightsIn, index, "weights"));
  }
  if (BoolAttr(context.node.attrs, "ragged", false)) {
    context.outputs = {Output(context.in(kRowsIn).dtype, {index[0], rows[1]})};
    return OkStatus();
  }
  const int64_t length = IntAttr(context.node.attrs, "length", 1);
  if (length < 1 || index[0].times % length != 0) {
    return Invalid("gather_rows: an index of {} is not {} ids for each sample",
                   context.shape_text(kIndexIn), length);
  }
  if (index[0].symbol > kBatch) {
    return Invalid("gather_rows: lists of varying length need bag; the index is {}",
                   context.shape_text(kIndexIn));
  }
  const Dim samples = {index[0].symbol, index[0].times / length};
  context.outputs = {Output(context.in(kRowsIn).dtype, {samples, Const(length), rows[1]})};
  return OkStatus();
}

Status GatherRowsGradient(GradientContext& context) {
  if (!context.needs_grad(kRowsIn)) return OkStatus();
  const Node& node = context.node();
  std::vector<ValueIndex> inputs = {context.output_grad(0), node.inputs[kRowEndsIn],
                                    node.inputs[kRowOrderIn]};
  if (node.inputs.size() > kWeightsIn) inputs.push_back(node.inputs[kWeightsIn]);
  const Attrs attrs = node.attrs;
  context.SetInputGrad(kRowsIn, context.Add("gather_rows_grad", std::move(inputs), attrs)[0]);
  return OkStatus();
}

// gather_rows_grad(dy [B, L, D], row_ends [U], row_order, weights if `weighted`): the gradient of
// rows, [U, D]. If `ragged`, dy is [N, D].
Status InferGatherRowsGrad(InferContext& context) {
  const bool weighted = BoolAttr(context.node.attrs, "weighted", false);
  DT_TRY_STATUS(ExpectInputs(context, weighted ? 4 : 3));
  DT_TRY_STATUS(ExpectFloat(context, 0));
  const bool ragged = BoolAttr(context.node.attrs, "ragged", false);
  DT_TRY_STATUS(ExpectRank(context, 0, ragged ? 2 : 3, ragged ? "[ids, dim]" : "[B, length, dim]"));
  DT_TRY_STATUS(ExpectIndex(context, 1));
  DT_TRY_STATUS(ExpectIndex(context, 2));
  if (weighted) DT_TRY_STATUS(ExpectShape(context, 3, context.in(2).shape, "weights"));
  context.outputs = {
      Output(context.in(0).dtype, {context.in(1).shape[0], context.in(0).shape.back()})};
  return OkStatus();
}

std::string GatherRowsLoops(const Graph&, const Node& node) {
  if (BoolAttr(node.attrs, "ragged", false)) return "&$d,n,@$,@n,n->nd";
  return "&$d,(bl),@$,@(bl),(bl)->bld|length=l,order=bld";
}

std::string GatherRowsGradLoops(const Graph&, const Node& node) {
  if (BoolAttr(node.attrs, "ragged", false)) return "&nd,@$,@n,n->$d";
  return "&bld,@$,@(bl),(bl)->$d|length=l";
}

constexpr AttrSpec kAttrs[] = {{.name = "length"},
                               {.name = "ragged", .type = AttrType::kBool},
                               {.name = "weighted", .type = AttrType::kBool}};
// Users write `lookup` or `sequence`, which expand to it.
constexpr OpSpec kSpecs[] = {
    {.name = "gather_rows",
     .infer = InferGatherRows,
     .gradient = GatherRowsGradient,
     .sharding = {.derive = GatherRowsLoops},
     .user_visible = false,
     .attrs = kAttrs},
    {.name = "gather_rows_grad",
     .infer = InferGatherRowsGrad,
     .sharding = {.derive = GatherRowsGradLoops},
     .user_visible = false,
     .attrs = kAttrs},
};

}  // namespace

std::span<const OpSpec> GatherRowsSpecs() { return kSpecs; }

}  // namespace dt
