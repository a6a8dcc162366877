#include "ops/infer.h"

#include <algorithm>
#include <utility>

namespace dt {

Value Output(DType dtype, SymShape shape) {
  Value value;
  value.dtype = dtype;
  value.shape = std::move(shape);
  return value;
}

Status ExpectInputs(const InferContext& context, size_t count) {
  return ExpectInputs(context, count, count);
}

Status ExpectInputs(const InferContext& context, size_t least, size_t most) {
  const size_t has = context.in_count();
  if (has >= least && has <= most) return OkStatus();
  const std::string range = least == most   ? fmt::format("{}", least)
                            : most == kNone ? fmt::format("at least {}", least)
                                            : fmt::format("{} to {}", least, most);
  return Invalid("{}: takes {} {}, has {}", context.node.op, range,
                 least == 1 && most == 1 ? "input" : "inputs", has);
}

Status ExpectFloat(const InferContext& context, size_t i) {
  if (context.in(i).dtype != DType::kU32) return OkStatus();
  return Invalid("{}: input {} (\"{}\") holds row positions, floats are needed", context.node.op,
                 i + 1, context.in(i).name);
}

Status ExpectIndex(const InferContext& context, size_t i) {
  if (context.in(i).dtype == DType::kU32) return OkStatus();
  return Invalid("{}: input {} (\"{}\") holds floats, row positions are needed", context.node.op,
                 i + 1, context.in(i).name);
}

Status ExpectFloats(const InferContext& context, size_t count) {
  DT_TRY_STATUS(ExpectInputs(context, count));
  for (size_t i = 0; i < count; ++i) DT_TRY_STATUS(ExpectFloat(context, i));
  return OkStatus();
}

Status ExpectRank(const InferContext& context, size_t i, size_t rank, std::string_view form) {
  if (context.in(i).shape.size() == rank) return OkStatus();
  return Invalid("{}: input {} (\"{}\") must be {}, is {}", context.node.op, i + 1,
                 context.in(i).name, form, context.shape_text(i));
}

Status ExpectShape(const InferContext& context, size_t i, const SymShape& shape,
                   std::string_view what) {
  if (context.in(i).shape == shape) return OkStatus();
  return Invalid("{}: {} must be {}, is {}", context.node.op, what, ShapeText(context.graph, shape),
                 context.shape_text(i));
}

Status ExpectDropout(const InferContext& context) {
  const double rate = FloatAttr(context.node.attrs, "dropout", 0);
  if (rate >= 0 && rate < 1) return OkStatus();
  return Invalid("{}: a dropout of {} is outside [0, 1)", context.node.op, rate);
}

Result<size_t> AxisOf(const InferContext& context, int64_t axis, size_t rank) {
  const auto limit = static_cast<int64_t>(rank);
  if (axis < -limit || axis >= limit) {
    return Invalid("{}: axis {} is outside the {} dimensions of its input", context.node.op, axis,
                   rank);
  }
  return static_cast<size_t>(axis < 0 ? axis + limit : axis);
}

Result<Dim> Product(const InferContext& context, const SymShape& shape, size_t begin, size_t end) {
  Dim product = Const(1);
  for (size_t i = begin; i < end; ++i) {
    if (shape[i].symbol != kConstant) {
      if (product.symbol != kConstant) {
        return Invalid("{}: {} has two dimensions that vary", context.node.op,
                       ShapeText(context.graph, shape));
      }
      product.symbol = shape[i].symbol;
    }
    product.times *= shape[i].times;
  }
  return product;
}

bool Divides(const Dim& dim, const Dim& factor) {
  return dim.times % factor.times == 0 &&
         (factor.symbol == kConstant || factor.symbol == dim.symbol);
}

Dim Quotient(const Dim& dim, const Dim& factor) {
  return {factor.symbol == kConstant ? dim.symbol : kConstant, dim.times / factor.times};
}

Result<SymShape> Broadcast(const InferContext& context, const SymShape& a, const SymShape& b) {
  SymShape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {  // From the right.
    const Dim da = i < a.size() ? a[a.size() - 1 - i] : Const(1);
    const Dim db = i < b.size() ? b[b.size() - 1 - i] : Const(1);
    if (da != db && da != Const(1) && db != Const(1)) {
      return Invalid("{}: shapes do not fit together: {} and {}", context.node.op,
                     ShapeText(context.graph, a), ShapeText(context.graph, b));
    }
    out[out.size() - 1 - i] = da == Const(1) ? db : da;
  }
  const auto varying = [](const SymShape& shape) {
    return std::ranges::count_if(shape, [](const Dim& d) { return d.symbol != kConstant; });
  };
  if (varying(out) > std::max(varying(a), varying(b))) {
    return Invalid("{}: {} and {} would give {}, every sample with every other", context.node.op,
                   ShapeText(context.graph, a), ShapeText(context.graph, b),
                   ShapeText(context.graph, out));
  }
  return out;
}

bool BroadcastsTo(const SymShape& from, const SymShape& to) {
  if (from.size() > to.size()) return false;
  const size_t skip = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != to[skip + i] && from[i] != Const(1)) return false;
  }
  return true;
}

Status InferSame(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  context.outputs = {Output(context.in(0).dtype, context.in(0).shape)};
  return OkStatus();
}

Status InferAllSame(InferContext& context) {
  for (size_t i = 0; i < context.in_count(); ++i) {
    DT_TRY_STATUS(ExpectFloat(context, i));
    if (context.in(i).shape != context.in(0).shape) {
      return Invalid("{}: shapes differ: {} and {}", context.node.op, context.shape_text(0),
                     context.shape_text(i));
    }
  }
  DT_TRY_STATUS(ExpectInputs(context, 1, kNone));
  context.outputs = {Output(context.in(0).dtype, context.in(0).shape)};
  return OkStatus();
}

Status InferLike(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 2));
  context.outputs = {Output(context.in(0).dtype, context.in(1).shape)};
  return OkStatus();
}

ValueIndex ReducedTo(GradientContext& context, size_t i, ValueIndex grad) {
  const Graph& graph = context.graph();
  const ValueIndex input = context.node().inputs[i];
  if (graph.value(input).shape == graph.value(grad).shape) return grad;
  return context.Add("reduce_to", {grad, input}, {})[0];
}

double ElementsAt(const SymShape& shape, int64_t batch) {
  double count = 1;
  for (const Dim& dim : shape) {
    count *= static_cast<double>(dim.times);
    if (dim.symbol != kConstant) count *= static_cast<double>(batch);
  }
  return count;
}

double BytesAt(const Value& value, int64_t batch) {
  return static_cast<double>(SizeOf(value.dtype)) * ElementsAt(value.shape, batch);
}

}  // namespace dt
