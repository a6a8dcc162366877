#include "ops/infer.h"
#include "ops/op_families.h"

// Operators that a loss over classes is written with when its classes are cut.
namespace dt {
namespace {

// ------------------------------------------------------------------ pick

// pick(x [.., N], position [.., 1]): the element of each row at its position, [.., 1]. Positions
// are whole numbers; otherwise the result is NaN. If this is a part of the rows, it begins at
// `first` of `whole` elements, and the result is 0 for positions in other parts.
Status CheckPositions(const InferContext& context, size_t positions, size_t values) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectFloats(context, 2));
  SymShape shape = context.in(values).shape;
  if (shape.empty() || shape.back().symbol != kConstant) {
    return Invalid("{}: the last dimension of {} must be constant", context.node.op,
                   context.shape_text(values));
  }
  shape.back() = Const(1);
  return ExpectShape(context, positions, shape, "the positions");
}

Status InferPick(InferContext& context) {
  DT_TRY_STATUS(CheckPositions(context, 1, 0));
  context.outputs = {Output(context.in(0).dtype, context.in(1).shape)};
  return OkStatus();
}

// pick_grad(position [.., 1], dy [.., 1]): rows of `size` elements, dy at the position, else 0.
Status InferPickGrad(InferContext& context) {
  DT_TRY_STATUS(CheckPositions(context, 0, 1));
  const int64_t size = IntAttr(context.node.attrs, "size", 0);
  if (size < 0) return Invalid("pick_grad: a row of {} elements", size);
  SymShape shape = context.in(1).shape;
  shape.back() = Const(size);
  context.outputs = {Output(context.in(1).dtype, std::move(shape))};
  return OkStatus();
}

// Positions get no gradient.
Status PickGradient(GradientContext& context) {
  const Node& node = context.node();
  if (!context.needs_grad(0)) return OkStatus();
  const int64_t size = context.graph().value(node.inputs[0]).shape.back().times;
  const std::vector<ValueIndex> inputs = {node.inputs[1], context.output_grad(0)};
  context.SetInputGrad(0, context.Add("pick_grad", inputs, {{"size", size}})[0]);
  return OkStatus();
}

// ------------------------------------------------------------------ sample_mean

// sample_mean(x [B, 1]): [1], the sum over the samples divided by the number of samples of the
// whole step.
Status CheckColumn(const InferContext& context, size_t input) {
  DT_TRY_STATUS(ExpectFloat(context, input));
  return ExpectShape(context, input, {Dim{kBatch, 1}, Const(1)}, "the column");
}

Status InferSampleMean(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 1));
  DT_TRY_STATUS(CheckColumn(context, 0));
  context.outputs = {Output(context.in(0).dtype, {Const(1)})};
  return OkStatus();
}

// sample_mean_grad(dy [1], x [B, 1]): dx, which has the shape of x.
Status InferSampleMeanGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectShape(context, 0, {Const(1)}, "the gradient"));
  DT_TRY_STATUS(CheckColumn(context, 1));
  context.outputs = {Output(context.in(0).dtype, context.in(1).shape)};
  return OkStatus();
}

Status SampleMeanGradient(GradientContext& context) {
  const std::vector<ValueIndex> inputs = {context.output_grad(0), context.node().inputs[0]};
  context.SetInputGrad(0, context.Add("sample_mean_grad", inputs, {})[0]);
  return OkStatus();
}

constexpr AttrSpec kAttrs[] = {{.name = "first", .type = AttrType::kInts},
                               {.name = "whole", .type = AttrType::kInts}};
constexpr AttrSpec kGradAttrs[] = {{.name = "size", .required = true},
                                   {.name = "first", .type = AttrType::kInts},
                                   {.name = "whole", .type = AttrType::kInts}};
constexpr OpSpec kSpecs[] = {
    {.name = "pick",
     .infer = InferPick,
     .gradient = PickGradient,
     .sharding = {.loops = "&*n,#n*1->*1|first=n"},
     .user_visible = false,
     .attrs = kAttrs},
    {.name = "pick_grad",
     .infer = InferPickGrad,
     .sharding = {.loops = "#n*1,&*1->*n|size=n,first=n"},
     .user_visible = false,
     .attrs = kGradAttrs},
    {.name = "sample_mean",
     .infer = InferSampleMean,
     .gradient = SampleMeanGradient,
     .sharding = {.loops = "&b1->1"},
     .user_visible = false},
    {.name = "sample_mean_grad",
     .infer = InferSampleMeanGrad,
     .sharding = {.loops = "&1,b1->b1"},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> PickSpecs() { return kSpecs; }

}  // namespace dt
