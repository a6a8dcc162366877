#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"
#include "ops/update/attr_specs.h"
#include "ops/update/attrs.h"
#include "ops/update/update.h"

namespace dt {
namespace {

// A table on the worker is [R, W]: each row has its values, then its optimizer state.
Status ExpectTable(const InferContext& context) {
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[rows, values and state]"));
  DT_TRY_STATUS(ExpectIndex(context, 1));
  return ExpectRank(context, 1, 1, "a list");
}

// take_rows(table [R, W], numbers [U]): [U, dim], the values of these rows. It has no gradient:
// update_rows takes the gradient of its output.
Status InferTakeRows(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectTable(context));
  const int64_t dim = IntAttr(context.node.attrs, "dim", 0);
  const Dim width = context.in(0).shape[1];
  if (dim < 1 || width.symbol != kConstant || width.times < dim) {
    return Invalid("take_rows: {} values of rows of {}", dim, context.shape_text(0));
  }
  context.outputs = {Output(context.in(0).dtype, {context.in(1).shape[0], Const(dim)})};
  return OkStatus();
}

// Only the rows count, not the whole table.
OpCost TakeRowsCost(const Graph& graph, const Node& node, int64_t batch) {
  const double elements = ElementsAt(graph.value(node.outputs[0]).shape, batch);
  return {.flops = 0, .bytes = 2 * elements * sizeof(float)};
}

// update_rows(table [R, W], numbers [U], grad [U, dim], steps_since_update [U]): no output; updates
// each row once, in place, as a server would. Its attributes are those of RowOptimizerAttrs.
Status InferUpdateRows(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 4));
  DT_TRY_STATUS(ExpectTable(context));
  DT_TRY_STATUS(ExpectFloat(context, 2));
  DT_TRY_STATUS(ExpectRank(context, 2, 2, "[rows, dim]"));
  DT_TRY_STATUS(ExpectIndex(context, 3));
  const SymShape& grad = context.in(2).shape;
  DT_TRY_STATUS(ExpectShape(context, 1, {grad[0]}, "numbers"));
  DT_TRY_STATUS(ExpectShape(context, 3, {grad[0]}, "steps_since_update"));
  const OptimizerSpec spec = RowOptimizerFromAttrs(context.node.attrs);
  const auto dim = static_cast<uint32_t>(grad[1].times);
  if (grad[1].symbol != kConstant || dim > kRowDimMax) {
    return Invalid("update_rows: gradients of {}", context.shape_text(2));
  }
  const Dim width = Const(int64_t{dim} + StateFloats(spec, dim));
  return ExpectShape(context, 0, {context.in(0).shape[0], width}, "the table");
}

OpCost UpdateRowsCost(const Graph& graph, const Node& node, int64_t batch) {
  const SymShape& grad = graph.value(node.inputs[2]).shape;
  const SymShape rows = {grad[0], graph.value(node.inputs[0]).shape[1]};
  const double elements = ElementsAt(rows, batch);
  return {.flops = 4 * elements, .bytes = (2 * elements + ElementsAt(grad, batch)) * sizeof(float)};
}

constexpr AttrSpec kTake[] = {{.name = "dim", .required = true}};
constexpr OpSpec kSpecs[] = {
    {.name = "take_rows",
     .infer = InferTakeRows,
     .cost = TakeRowsCost,
     .sharding = {.loops = "RW,$->$."},
     .user_visible = false,
     .attrs = kTake},
    {.name = "update_rows",
     .outputs = 0,
     .infer = InferUpdateRows,
     .cost = UpdateRowsCost,
     .sharding = {.derive = UncutLoops},
     .user_visible = false,
     .attrs = kRowOptimizerAttrs,
     .traits = {.kind = OpKind::kUpdate, .writes = {0}}},
};

}  // namespace

std::span<const OpSpec> TableRowSpecs() { return kSpecs; }

}  // namespace dt
