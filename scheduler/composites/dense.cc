#include <algorithm>

#include "scheduler/composites/attributes.h"
#include "scheduler/composites/composite.h"

namespace dt::scheduler {

InitSpec InitOf(const GraphBuilder& builder, InitSpec fallback) {
  constexpr std::pair<std::string_view, InitKind> kKinds[] = {
      {"zeros", InitKind::kZeros},
      {"constant", InitKind::kConstant},
      {"normal", InitKind::kNormal},
      {"uniform", InitKind::kUniform},
      {"xavier_normal", InitKind::kXavierNormal},
      {"xavier_uniform", InitKind::kXavierUniform}};
  const Attrs& attrs = builder.user().attrs;
  const std::string name = TextAttr(attrs, "init", "");
  for (const auto& [word, kind] : kKinds) {
    if (word == name) return {kind, static_cast<float>(FloatAttr(attrs, "init_value", 0.01))};
  }
  return fallback;
}

Result<ValueIndex> DenseLayer(GraphBuilder& builder, ValueIndex x, int64_t units,
                              std::string_view prefix) {
  const std::string before(prefix);
  const int64_t width = builder.shape(x)[1].times;
  const InitSpec init = InitOf(builder, {InitKind::kXavierNormal, 0});
  DT_TRY(const ValueIndex weight,
         builder.Parameter({before + "weight", {width, units}, init, width, units}));
  DT_TRY(const ValueIndex product, builder.Add("matmul", before + "matmul", {x, weight}));
  if (!BoolAttr(builder.user().attrs, "bias", true)) return product;
  DT_TRY(const ValueIndex bias,
         builder.Parameter({before + "bias", {units}, {InitKind::kZeros, 0}}));
  return builder.Add("bias_add", before + "bias_add", {product, bias});
}

Result<ValueIndex> SumOf(GraphBuilder& builder, std::span<const ValueIndex> values) {
  ValueIndex sum = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    DT_TRY(sum, builder.Add("add", fmt::format("add{}", i), {sum, values[i]}));
  }
  return sum;
}

Result<ValueIndex> FullLayer(GraphBuilder& b, ValueIndex x, int64_t units,
                             std::string_view prefix) {
  const std::string before(prefix);
  const Attrs& attrs = b.user().attrs;
  DT_TRY(x, DenseLayer(b, x, units, prefix));
  if (BoolAttr(attrs, "batch_norm", false)) {
    const NormOptions options = {FloatAttr(attrs, "batch_norm_momentum", 0.1),
                                 FloatAttr(attrs, "batch_norm_epsilon", 1e-5)};
    DT_TRY(x, NormLayer(b, x, options, prefix));
  }
  const std::string activation =
      TextAttr(attrs, "activation", b.user().op == "dense" ? "none" : "relu");
  DT_TRY(x, Activate(b, x, activation, prefix));
  const double rate = FloatAttr(attrs, "dropout", 0);
  if (rate > 0) {
    DT_TRY(x, b.Add("dropout", before + "dropout", {x}, {{"rate", rate}}));
  }
  return x;
}

namespace {

using Operands = std::span<const Operand>;

Result<ValueIndex> Flattened(GraphBuilder& b, Operands operands) {
  DT_TRY(std::vector<ValueIndex> values, b.Values(operands, true));
  return b.Flat(std::move(values), "");
}

Result<ValueIndex> Dense(GraphBuilder& b, Operands operands) {
  DT_TRY(const ValueIndex x, Flattened(b, operands));
  return FullLayer(b, x, IntAttr(b.user().attrs, "units", 1), "");
}

Result<ValueIndex> Mlp(GraphBuilder& b, Operands operands) {
  DT_TRY(ValueIndex x, Flattened(b, operands));
  const std::vector<int64_t> units = IntsAttr(b.user().attrs, "units");
  for (size_t i = 0; i < units.size(); ++i) {
    const std::string prefix = fmt::format("{}.", i);
    // A single unit at the end is a logit: an activation or dropout would only harm it.
    const bool is_logit = i + 1 == units.size() && units[i] == 1;
    DT_TRY(x, is_logit ? DenseLayer(b, x, 1, prefix) : FullLayer(b, x, units[i], prefix));
  }
  return x;
}

// x' = x0 (x · w) + b + x: Wang et al., "Deep & Cross Network" (2017).
Result<ValueIndex> Cross(GraphBuilder& b, Operands operands) {
  DT_TRY(const ValueIndex x0, Flattened(b, operands));
  const int64_t width = b.shape(x0)[1].times;
  const InitSpec init = InitOf(b, {InitKind::kXavierNormal, 0});
  ValueIndex x = x0;
  for (int64_t i = 0; i < IntAttr(b.user().attrs, "layers", 1); ++i) {
    DT_TRY(const ValueIndex w,
           b.Parameter({fmt::format("{}.weight", i), {width, 1}, init, width, 1}));
    DT_TRY(const ValueIndex bias,
           b.Parameter({fmt::format("{}.bias", i), {width}, {InitKind::kZeros, 0}}));
    DT_TRY(x, b.Add("cross_layer", fmt::format("{}", i), {x0, x, w, bias}));
  }
  return x;
}

// W x + b, or with a rank U (V x) + b.
Result<ValueIndex> CrossProduct(GraphBuilder& b, ValueIndex x, int64_t rank,
                                const std::string& prefix) {
  const int64_t width = b.shape(x)[1].times;
  if (rank == 0) return DenseLayer(b, x, width, prefix);
  const InitSpec init = InitOf(b, {InitKind::kXavierNormal, 0});
  DT_TRY(const ValueIndex v, b.Parameter({prefix + "v", {width, rank}, init, width, rank}));
  DT_TRY(const ValueIndex narrow, b.Add("matmul", prefix + "narrow", {x, v}));
  return DenseLayer(b, narrow, width, prefix);
}

// x' = x0 * (W x + b) + x: Wang et al., "DCN V2" (2021).
Result<ValueIndex> CrossV2(GraphBuilder& b, Operands operands) {
  DT_TRY(const ValueIndex x0, Flattened(b, operands));
  const int64_t rank = IntAttr(b.user().attrs, "rank", 0);
  ValueIndex x = x0;
  for (int64_t i = 0; i < IntAttr(b.user().attrs, "layers", 1); ++i) {
    const std::string prefix = fmt::format("{}.", i);
    DT_TRY(const ValueIndex wx, CrossProduct(b, x, rank, prefix));
    DT_TRY(const ValueIndex product, b.Add("mul", prefix + "mul", {x0, wx}));
    DT_TRY(x, b.Add("add", prefix + "add", {product, x}));
  }
  return x;
}

Result<ValueIndex> Interaction(GraphBuilder& b, Operands operands) {
  DT_TRY(std::vector<ValueIndex> values, b.Values(operands, false));
  DT_TRY(const ValueIndex fields, b.Fields(std::move(values)));
  return b.Add(b.user().op, "", {fields}, b.user().attrs);
}

// Elementwise sum of any number of inputs.
Result<ValueIndex> Add(GraphBuilder& b, Operands operands) {
  DT_TRY(const std::vector<ValueIndex> values, b.Values(operands, false));
  if (values.size() == 2) return b.Add("add", "", values);
  return SumOf(b, values);
}

// Sum over the fields of each input and over the inputs.
Result<ValueIndex> Sum(GraphBuilder& b, Operands operands) {
  DT_TRY(std::vector<ValueIndex> values, b.Values(operands, false));
  for (size_t i = 0; i < values.size(); ++i) {
    if (b.shape(values[i]).size() != 3) continue;
    DT_TRY(values[i], b.Add("reduce_sum", fmt::format("fields{}", i), {values[i]},
                            {{"axis", std::vector<int64_t>{1}}}));
  }
  return SumOf(b, values);
}

Result<ValueIndex> Concat(GraphBuilder& b, Operands operands) {
  DT_TRY(std::vector<ValueIndex> values, b.Values(operands, true));
  if (values.size() == 1) return values[0];
  return b.Add("concat", "", std::move(values), {{"axis", IntAttr(b.user().attrs, "axis", 1)}});
}

Result<ValueIndex> UserParameter(GraphBuilder& b, Operands operands) {
  if (!operands.empty()) return b.Error("a parameter has no inputs");
  const std::vector<int64_t> shape = IntsAttr(b.user().attrs, "shape");
  return b.Parameter(
      {"value", shape, InitOf(b, {InitKind::kZeros, 0}), shape.front(), shape.back()});
}

constexpr Composite kComposites[] = {
    {"add", Add, 1},       {"concat", Concat}, {"cross", Cross},
    {"cross_v2", CrossV2}, {"dense", Dense},   {"flatten", Flattened},
    {"fm", Interaction},   {"mlp", Mlp},       {"parameter", UserParameter, 0},
    {"sum", Sum},
};

}  // namespace

std::span<const Composite> DenseComposites() { return kComposites; }

}  // namespace dt::scheduler
