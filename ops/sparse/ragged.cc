#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// Lists of varying length have two forms. Ragged: values [N, D] of all samples one behind the
// other, with ends [B]; sample b has values [ends[b - 1], ends[b]). Padded: [B, length, D], a
// sample's values followed by zeros. Only the last `length` values of a longer list are kept, as
// the reader does.
Result<int64_t> LengthOf(const InferContext& context) {
  const int64_t length = IntAttr(context.node.attrs, "length", 0);
  if (length >= 1) return length;
  return Invalid("{}: length is {}, expected 1 or more", context.node.op, length);
}

Status ExpectEnds(const InferContext& context, size_t i) {
  DT_TRY_STATUS(ExpectIndex(context, i));
  return ExpectRank(context, i, 1, "one end for each sample");
}

// lengths_mask(ends [B]): [B, length], 1 where the padded form holds a value, else 0.
Status InferLengthsMask(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 1));
  DT_TRY_STATUS(ExpectEnds(context, 0));
  DT_TRY(const int64_t length, LengthOf(context));
  context.outputs = {Output(DType::kF32, {context.in(0).shape[0], Const(length)})};
  return OkStatus();
}

// ragged_to_padded(values [N, D], ends [B]): [B, length, D].
Status InferRaggedToPadded(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectRank(context, 0, 2, "[ids, dim]"));
  DT_TRY_STATUS(ExpectEnds(context, 1));
  DT_TRY(const int64_t length, LengthOf(context));
  const Value& values = context.in(0);
  context.outputs = {
      Output(values.dtype, {context.in(1).shape[0], Const(length), values.shape[1]})};
  return OkStatus();
}

Status RaggedToPaddedGradient(GradientContext& context) {
  const std::vector<ValueIndex> inputs = context.node().inputs;
  context.SetInputGrad(
      0, context.Add("padded_to_ragged", {context.output_grad(0), inputs[1], inputs[0]}, {})[0]);
  return OkStatus();
}

// padded_to_ragged(x [B, L, D], ends [B], like [N, ..]): [N, D]; zeros for values that the padded
// form has cut off. Only the first dimension of `like` is used; it gives N.
Status InferPaddedToRagged(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 3));
  DT_TRY_STATUS(ExpectFloat(context, 0));
  DT_TRY_STATUS(ExpectRank(context, 0, 3, "[B, length, dim]"));
  DT_TRY_STATUS(ExpectEnds(context, 1));
  const Value& x = context.in(0);
  DT_TRY_STATUS(ExpectShape(context, 1, {x.shape[0]}, "the ends"));
  if (x.shape[1].symbol != kConstant || context.in(2).shape.empty()) {
    return Invalid("padded_to_ragged: {} and {} are no padded lists and what they are cut from",
                   context.shape_text(0), context.shape_text(2));
  }
  context.outputs = {Output(x.dtype, {context.in(2).shape[0], x.shape[2]})};
  return OkStatus();
}

Status PaddedToRaggedGradient(GradientContext& context) {
  if (!context.needs_grad(0)) return OkStatus();
  const std::vector<ValueIndex> inputs = context.node().inputs;
  const int64_t length = context.graph().value(inputs[0]).shape[1].times;
  context.SetInputGrad(0, context.Add("ragged_to_padded", {context.output_grad(0), inputs[1]},
                                      {{"length", length}})[0]);
  return OkStatus();
}

constexpr AttrSpec kLength[] = {{.name = "length", .required = true}};
// Users write `sequence`, which expands to these.
constexpr OpSpec kSpecs[] = {
    {.name = "lengths_mask",
     .infer = InferLengthsMask,
     .sharding = {.loops = "^b->bL"},
     .user_visible = false,
     .attrs = kLength},
    {.name = "ragged_to_padded",
     .infer = InferRaggedToPadded,
     .gradient = RaggedToPaddedGradient,
     .sharding = {.loops = "&b'd,^b->bLd"},
     .user_visible = false,
     .attrs = kLength},
    {.name = "padded_to_ragged",
     .infer = InferPaddedToRagged,
     .gradient = PaddedToRaggedGradient,
     .sharding = {.loops = "&bLd,^b,b'~->b'd"},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> RaggedSpecs() { return kSpecs; }

}  // namespace dt
