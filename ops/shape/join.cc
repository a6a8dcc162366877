#include "common/graph/shape_bounds.h"
#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// concat(x1, x2, …): along `axis` (default the last); other dimensions are equal.
Status InferConcat(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 1, kNone));
  SymShape out = context.in(0).shape;
  DT_TRY(const size_t axis, AxisOf(context, IntAttr(context.node.attrs, "axis", -1), out.size()));
  int64_t total = 0;
  for (size_t i = 0; i < context.in_count(); ++i) {
    DT_TRY_STATUS(ExpectFloat(context, i));
    SymShape shape = context.in(i).shape;
    if (shape.size() == out.size()) {
      if (shape[axis].symbol != kConstant) {
        return Invalid("concat: axis {} of {} varies, only constant dimensions are joined", axis,
                       context.shape_text(i));
      }
      total += shape[axis].times;
      shape[axis] = out[axis];
    }
    if (shape != out) {
      return Invalid("concat: shapes do not fit along axis {}: {} and {}", axis,
                     context.shape_text(0), context.shape_text(i));
    }
  }
  out[axis] = Const(total);
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

Attrs SliceAttrs(size_t axis, int64_t begin, int64_t end) {
  return {{"axis", static_cast<int64_t>(axis)}, {"begin", begin}, {"end", end}};
}

Status ConcatGradient(GradientContext& context) {
  const std::vector<ValueIndex> inputs = context.node().inputs;
  const auto rank = static_cast<int64_t>(context.graph().value(inputs[0]).shape.size());
  const int64_t written = IntAttr(context.node().attrs, "axis", -1);
  const auto axis = static_cast<size_t>(written < 0 ? written + rank : written);
  int64_t begin = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t end = begin + context.graph().value(inputs[i]).shape[axis].times;
    if (context.needs_grad(i)) {
      const auto grad =
          context.Add("slice", {context.output_grad(0)}, SliceAttrs(axis, begin, end));
      context.SetInputGrad(i, grad[0]);
    }
    begin = end;
  }
  return OkStatus();
}

// slice(x): [begin, end) of `axis`; end defaults to the dimension.
Status InferSlice(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  SymShape out = context.in(0).shape;
  DT_TRY(const size_t axis, AxisOf(context, IntAttr(context.node.attrs, "axis", -1), out.size()));
  const int64_t begin = IntAttr(context.node.attrs, "begin", 0);
  const int64_t end = IntAttr(context.node.attrs, "end", out[axis].times);
  if (out[axis].symbol != kConstant) {
    return Invalid("slice: axis {} of {} varies, only constant dimensions are cut", axis,
                   context.shape_text(0));
  }
  if (begin < 0 || begin >= end || end > out[axis].times) {
    return Invalid("slice: [{}, {}) is not within axis {} of {}", begin, end, axis,
                   context.shape_text(0));
  }
  out[axis] = Const(end - begin);
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

Status SliceGradient(GradientContext& context) {
  const SymShape shape = context.graph().value(context.node().inputs[0]).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const Attrs attrs = context.node().attrs;
  const int64_t written = IntAttr(attrs, "axis", -1);
  const int64_t axis = written < 0 ? written + rank : written;
  const int64_t size = shape[static_cast<size_t>(axis)].times;
  const Attrs pad = {{"axis", axis},
                     {"before", IntAttr(attrs, "begin", 0)},
                     {"after", size - IntAttr(attrs, "end", size)}};
  context.SetInputGrad(0, context.Add("pad", {context.output_grad(0)}, pad)[0]);
  return OkStatus();
}

// pad(x): zeros `before` and `after` along `axis`.
Status InferPad(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  SymShape out = context.in(0).shape;
  DT_TRY(const size_t axis, AxisOf(context, IntAttr(context.node.attrs, "axis", -1), out.size()));
  const int64_t before = IntAttr(context.node.attrs, "before", 0);
  const int64_t after = IntAttr(context.node.attrs, "after", 0);
  const auto fits = [](int64_t n) { return n >= 0 && n <= kElementsMax; };
  if (out[axis].symbol != kConstant || !fits(before) || !fits(after)) {
    return Invalid("pad: cannot add {} and {} along axis {} of {}", before, after, axis,
                   context.shape_text(0));
  }
  out[axis].times += before + after;
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

Status PadGradient(GradientContext& context) {
  const ValueIndex input = context.node().inputs[0];
  const SymShape shape = context.graph().value(input).shape;
  const Attrs attrs = context.node().attrs;
  const int64_t written = IntAttr(attrs, "axis", -1);
  const auto axis =
      static_cast<size_t>(written < 0 ? written + static_cast<int64_t>(shape.size()) : written);
  const int64_t before = IntAttr(attrs, "before", 0);
  context.SetInputGrad(0, context.Add("slice", {context.output_grad(0)},
                                      SliceAttrs(axis, before, before + shape[axis].times))[0]);
  return OkStatus();
}

// stack(x1, x2, …): [B, D] is one field, [B, f, D] is f fields; gives [B, fields, D].
Status InferStack(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 1, kNone));
  int64_t fields = 0;
  const SymShape& first = context.in(0).shape;
  for (size_t i = 0; i < context.in_count(); ++i) {
    DT_TRY_STATUS(ExpectFloat(context, i));
    const SymShape& shape = context.in(i).shape;
    if (shape.size() != 2 && shape.size() != 3) {
      return Invalid("stack: input {} (\"{}\") must be [B, dim] or [B, fields, dim], is {}", i + 1,
                     context.in(i).name, context.shape_text(i));
    }
    const bool varies = shape.size() == 3 && shape[1].symbol != kConstant;
    if (varies || shape.front() != first.front() || shape.back() != first.back()) {
      return Invalid("stack: shapes do not fit: {} and {}", context.shape_text(0),
                     context.shape_text(i));
    }
    fields += shape.size() == 3 ? shape[1].times : 1;
  }
  context.outputs = {Output(context.in(0).dtype, {first.front(), Const(fields), first.back()})};
  return OkStatus();
}

Status StackGradient(GradientContext& context) {
  const std::vector<ValueIndex> inputs = context.node().inputs;
  int64_t begin = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const SymShape shape = context.graph().value(inputs[i]).shape;
    const int64_t end = begin + (shape.size() == 3 ? shape[1].times : 1);
    if (context.needs_grad(i)) {
      ValueIndex grad =
          context.Add("slice", {context.output_grad(0)}, SliceAttrs(1, begin, end))[0];
      if (shape.size() == 2) grad = context.Add("flatten", {grad}, {})[0];
      context.SetInputGrad(i, grad);
    }
    begin = end;
  }
  return OkStatus();
}

std::string StackLoops(const Graph& graph, const Node& node) {
  std::string text;
  for (const ValueIndex v : node.inputs) {
    text += text.empty() ? "" : ",";
    text += graph.value(v).shape.size() == 2 ? "bd" : "b.d";
  }
  return text + "->b.d";
}

constexpr AttrSpec kAxis[] = {{.name = "axis"}};
constexpr AttrSpec kSliceAttrs[] = {{.name = "axis"}, {.name = "begin"}, {.name = "end"}};
constexpr AttrSpec kPadAttrs[] = {{.name = "axis"}, {.name = "before"}, {.name = "after"}};
constexpr OpSpec kSpecs[] = {
    {.name = "concat",
     .infer = InferConcat,
     .gradient = ConcatGradient,
     .sharding = {.derive = OneAxisLoops, .linear = "+"},
     .attrs = kAxis},
    {.name = "slice",
     .infer = InferSlice,
     .gradient = SliceGradient,
     .sharding = {.derive = OneAxisLoops, .linear = "+"},
     .attrs = kSliceAttrs},
    {.name = "pad",
     .infer = InferPad,
     .gradient = PadGradient,
     .sharding = {.derive = OneAxisLoops, .linear = "+"},
     .attrs = kPadAttrs},
    {.name = "stack",
     .infer = InferStack,
     .gradient = StackGradient,
     .sharding = {.derive = StackLoops, .linear = "+"}},
};

}  // namespace

std::span<const OpSpec> JoinSpecs() { return kSpecs; }

}  // namespace dt
