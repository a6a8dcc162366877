#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// split_heads(x [B, F, H d]): [B, H, F, d]; the columns of each of the `heads` become a matrix of
// its own. merge_heads(x [B, H, F, d]): the reverse.
Status InferSplitHeads(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  DT_TRY_STATUS(ExpectRank(context, 0, 3, "[B, fields, dim]"));
  const int64_t heads = IntAttr(context.node.attrs, "heads", 1);
  const SymShape& x = context.in(0).shape;
  if (heads < 1 || x[2].symbol != kConstant || x[2].times % heads != 0) {
    return Invalid("split_heads: the last dimension of {} cannot be divided among {} heads",
                   context.shape_text(0), heads);
  }
  context.outputs = {
      Output(context.in(0).dtype, {x[0], Const(heads), x[1], Const(x[2].times / heads)})};
  return OkStatus();
}

Status InferMergeHeads(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  DT_TRY_STATUS(ExpectRank(context, 0, 4, "[B, heads, fields, dim]"));
  const SymShape& x = context.in(0).shape;
  DT_TRY(const Dim width, Product(context, {x[1], x[3]}, 0, 2));
  context.outputs = {Output(context.in(0).dtype, {x[0], x[2], width})};
  return OkStatus();
}

Status SplitHeadsGradient(GradientContext& context) {
  context.SetInputGrad(0, context.Add("merge_heads", {context.output_grad(0)}, {})[0]);
  return OkStatus();
}

Status MergeHeadsGradient(GradientContext& context) {
  const int64_t heads = context.graph().value(context.node().inputs[0]).shape[1].times;
  const Attrs attrs = {{"heads", heads}};
  context.SetInputGrad(0, context.Add("split_heads", {context.output_grad(0)}, attrs)[0]);
  return OkStatus();
}

constexpr AttrSpec kAttrs[] = {{.name = "heads", .type = AttrType::kInt, .required = true}};
constexpr OpSpec kSpecs[] = {
    {.name = "split_heads",
     .infer = InferSplitHeads,
     .gradient = SplitHeadsGradient,
     .sharding = {.loops = "&bf(hd)->bhfd|heads=h"},
     .attrs = kAttrs},
    {.name = "merge_heads",
     .infer = InferMergeHeads,
     .gradient = MergeHeadsGradient,
     .sharding = {.loops = "&bhfd->bf(hd)"}},
};

}  // namespace

std::span<const OpSpec> HeadsSpecs() { return kSpecs; }

}  // namespace dt
