// Activations and normalisations with parameters of their own, and helpers that layers share.
#include "scheduler/composites/composite.h"

namespace dt::scheduler {
namespace {

using Operands = std::span<const Operand>;

constexpr InitSpec kOnes = {InitKind::kConstant, 1.0f}, kZeros = {InitKind::kZeros, 0};

// A trained value for each channel, or a constant if not `trained`.
Result<ValueIndex> PerChannel(GraphBuilder& b, const std::string& name, int64_t channels,
                              const InitSpec& init, bool trained) {
  if (trained) return b.Parameter({name, {channels}, init});
  return b.Add("fill", name, {},
               {{"shape", std::vector<int64_t>{channels}}, {"value", double{init.value}}});
}

// The activation of Zhou et al., "Deep Interest Network" (2018): a PReLU whose gate follows the
// batch's distribution. Statistics and running values are those of batch_norm.
Result<ValueIndex> DiceLayer(GraphBuilder& b, ValueIndex x, NormOptions options,
                             const std::string& before) {
  options.affine = false;
  DT_TRY(const ValueIndex normal, NormLayer(b, x, options, before + "dice."));
  DT_TRY(const ValueIndex alpha, b.Parameter({before + "alpha", {b.shape(x)[1].times}, kZeros}));
  return b.Add("dice", before + "dice", {x, normal, alpha});
}

Result<ValueIndex> OneInput(GraphBuilder& b, Operands operands) {
  DT_TRY(const std::vector<ValueIndex> values, b.Values(operands, true));
  if (values.size() == 1) return values[0];
  return b.Error("{} takes 1 input, has {}", b.user().op, values.size());
}

Result<ValueIndex> Prelu(GraphBuilder& b, Operands operands) {
  DT_TRY(const ValueIndex x, OneInput(b, operands));
  return Activate(b, x, "prelu", "");
}

NormOptions OptionsOf(const GraphBuilder& b) {
  const Attrs& attrs = b.user().attrs;
  return {FloatAttr(attrs, "momentum", 0.1), FloatAttr(attrs, "epsilon", 1e-5)};
}

Result<ValueIndex> Dice(GraphBuilder& b, Operands operands) {
  DT_TRY(const ValueIndex x, OneInput(b, operands));
  return DiceLayer(b, x, OptionsOf(b), "");
}

Result<ValueIndex> BatchNorm(GraphBuilder& b, Operands operands) {
  DT_TRY(std::vector<ValueIndex> values, b.Values(operands, true));
  DT_TRY(const ValueIndex x, b.Flat(std::move(values), ""));
  return NormLayer(b, x, OptionsOf(b), "");
}

constexpr Composite kComposites[] = {{"batch_norm", BatchNorm}, {"dice", Dice}, {"prelu", Prelu}};

}  // namespace

Result<ValueIndex> NormLayer(GraphBuilder& builder, ValueIndex x, const NormOptions& options,
                             std::string_view prefix) {
  const std::string before(prefix);
  if (builder.shape(x).size() != 2) {
    return builder.Error("batch normalisation takes [B, n], its input has shape {}",
                         ShapeText(builder.graph(), builder.shape(x)));
  }
  const int64_t n = builder.shape(x)[1].times;
  DT_TRY(const ValueIndex gamma, PerChannel(builder, before + "gamma", n, kOnes, options.affine));
  DT_TRY(const ValueIndex beta, PerChannel(builder, before + "beta", n, kZeros, options.affine));
  DT_TRY(const ValueIndex mean,
         builder.Parameter({before + "running_mean", {n}, kZeros, 0, 0, false}));
  DT_TRY(const ValueIndex var,
         builder.Parameter({before + "running_var", {n}, kOnes, 0, 0, false}));
  return builder.Add("batch_norm", before + "batch_norm", {x, gamma, beta, mean, var},
                     {{"momentum", options.momentum}, {"epsilon", options.epsilon}});
}

Result<ValueIndex> Activate(GraphBuilder& builder, ValueIndex x, const std::string& activation,
                            std::string_view prefix) {
  const std::string before(prefix);
  if (activation == "none") return x;
  if (activation == "dice") return DiceLayer(builder, x, {}, before);
  if (activation != "prelu") return builder.Add(activation, before + activation, {x});
  // The initial value of He et al. (2015).
  constexpr InitSpec kQuarter = {InitKind::kConstant, 0.25f};
  const int64_t n = builder.shape(x).back().times;
  DT_TRY(const ValueIndex alpha, builder.Parameter({before + "alpha", {n}, kQuarter}));
  return builder.Add("prelu", before + "prelu", {x, alpha});
}

std::span<const Composite> ActivationComposites() { return kComposites; }

}  // namespace dt::scheduler
