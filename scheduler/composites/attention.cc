// Self-attention over fields, and the blocks around it.
#include <cmath>

#include "scheduler/composites/composite.h"

namespace dt::scheduler {

namespace {

using Operands = std::span<const Operand>;

// x · W[n, units], where n is the last dimension of x. Parameter "<node>.<part>weight".
Result<ValueIndex> Projected(GraphBuilder& builder, ValueIndex x, int64_t units,
                             std::string_view part) {
  const std::string before(part);
  const int64_t width = builder.shape(x).back().times;
  const InitSpec init = InitOf(builder, {InitKind::kXavierNormal, 0});
  DT_TRY(const ValueIndex weight,
         builder.Parameter({before + "weight", {width, units}, init, width, units}));
  return builder.Add("matmul", before + "matmul", {x, weight});
}

// Inputs of both composites: the fields, and which of them count.
struct Attended {
  ValueIndex x = kNone;     // [B, fields, dim]
  ValueIndex mask = kNone;  // In the form that masked_softmax takes; kNone if all fields count.
};

struct Heads {
  int64_t heads = 1;
  int64_t units = 1;  // Units of all heads together.
  bool scaled = true;
  double dropout = 0;
};

// With `masked`, the last input is a mask [B, fields], which is 0 for the fields of a sample that
// do not count.
Result<Attended> Read(GraphBuilder& b, Operands operands) {
  Attended in;
  const bool masked = BoolAttr(b.user().attrs, "masked", false);
  if (masked && operands.size() < 2) {
    return b.Error("with masked, its last input is the mask; {} is the only one", operands[0].name);
  }
  DT_TRY(std::vector<ValueIndex> values, b.Values(operands, false));
  const ValueIndex mask = values.back();
  if (masked) values.pop_back();
  DT_TRY(in.x, b.Fields(std::move(values)));
  const Dim fields = b.shape(in.x)[1];
  if (!masked) return in;
  if (b.shape(mask) != SymShape{Dim{kBatch, 1}, fields}) {
    return b.Error("its mask has shape {}, the fields are {}: it needs one number for each field",
                   ShapeText(b.graph(), b.shape(mask)), ShapeText(b.graph(), b.shape(in.x)));
  }
  std::vector<int64_t> shape = {-1, 1, fields.times};
  if (IntAttr(b.user().attrs, "heads", 1) > 1) shape.insert(shape.begin() + 1, 1);
  DT_TRY(in.mask, b.Add("reshape", "mask", {mask}, {{"shape", std::move(shape)}}));
  return in;
}

// Query, key or value: [B, fields, units], or with several heads [B, heads, fields, units / heads].
Result<ValueIndex> Side(GraphBuilder& b, ValueIndex x, const Heads& heads,
                        const std::string& part) {
  DT_TRY(const ValueIndex all, Projected(b, x, heads.units, part + "."));
  if (heads.heads == 1) return all;
  return b.Add("split_heads", part + ".heads", {all}, {{"heads", heads.heads}});
}

// softmax(Q Kᵀ / √d) V of every head, concatenated: [B, fields, units] (Vaswani et al., "Attention
// is all you need", 2017).
Result<ValueIndex> SelfAttention(GraphBuilder& b, const Attended& in, const Heads& heads,
                                 const std::string& prefix) {
  DT_TRY(const ValueIndex query, Side(b, in.x, heads, prefix + "query"));
  DT_TRY(const ValueIndex key, Side(b, in.x, heads, prefix + "key"));
  DT_TRY(const ValueIndex value, Side(b, in.x, heads, prefix + "value"));
  DT_TRY(ValueIndex weights,
         b.Add("batch_matmul", prefix + "scores", {query, key}, {{"transpose_b", true}}));
  const double width = static_cast<double>(heads.units) / static_cast<double>(heads.heads);
  const Attrs scale = {{"scale", heads.scaled ? 1 / std::sqrt(width) : 1.0}};
  if (in.mask == kNone) {
    DT_TRY(weights, b.Add("softmax", prefix + "softmax", {weights}, scale));
  } else {
    DT_TRY(weights, b.Add("masked_softmax", prefix + "softmax", {weights, in.mask}, scale));
  }
  if (heads.dropout > 0) {
    DT_TRY(weights, b.Add("dropout", prefix + "dropout", {weights}, {{"rate", heads.dropout}}));
  }
  DT_TRY(const ValueIndex result, b.Add("batch_matmul", prefix + "mixed", {weights, value}));
  if (heads.heads == 1) return result;
  return b.Add("merge_heads", prefix + "merged", {result});
}

Result<Heads> HeadsOf(const GraphBuilder& b, int64_t units) {
  const Attrs& attrs = b.user().attrs;
  Heads heads{.heads = IntAttr(attrs, "heads", 1),
              .units = units,
              .scaled = BoolAttr(attrs, "scale", true),
              .dropout = FloatAttr(attrs, "dropout", 0)};
  if (units % heads.heads == 0) return heads;
  return b.Error("its {} units cannot be divided among {} heads", units, heads.heads);
}

// Layers of concatenated heads; with `residual`, x · W is added; then the activation. This is
// AutoInt's interacting layer (Song et al., CIKM 2019).
Result<ValueIndex> Attention(GraphBuilder& b, Operands operands) {
  DT_TRY(Attended in, Read(b, operands));
  const Attrs& attrs = b.user().attrs;
  const int64_t units = IntAttr(attrs, "units", b.shape(in.x)[2].times);
  DT_TRY(const Heads heads, HeadsOf(b, units));
  const std::string activation = TextAttr(attrs, "activation", "none");
  for (int64_t i = 0; i < IntAttr(attrs, "layers", 1); ++i) {
    const std::string prefix = fmt::format("{}.", i);
    DT_TRY(ValueIndex y, SelfAttention(b, in, heads, prefix));
    if (BoolAttr(attrs, "residual", false)) {
      DT_TRY(const ValueIndex past, Projected(b, in.x, units, prefix + "residual."));
      DT_TRY(y, b.Add("add", prefix + "add", {y, past}));
    }
    DT_TRY(y, Activate(b, y, activation, prefix));
    in.x = y;
  }
  return in.x;
}

Result<ValueIndex> Norm(GraphBuilder& b, ValueIndex x, const std::string& prefix) {
  const std::vector<int64_t> shape = {b.shape(x).back().times};
  DT_TRY(const ValueIndex gamma,
         b.Parameter({prefix + "gamma", shape, {InitKind::kConstant, 1.0f}}));
  DT_TRY(const ValueIndex beta, b.Parameter({prefix + "beta", shape, {InitKind::kZeros, 0}}));
  const double epsilon = FloatAttr(b.user().attrs, "epsilon", 1e-5);
  return b.Add("layer_norm", prefix + "layer_norm", {x, gamma, beta}, {{"epsilon", epsilon}});
}

Result<ValueIndex> LayerNorm(GraphBuilder& b, Operands operands) {
  DT_TRY(std::vector<ValueIndex> values, b.Values(operands, true));
  if (values.size() == 1) return Norm(b, values[0], "");
  DT_TRY(const ValueIndex x, b.Flat(std::move(values), ""));
  return Norm(b, x, "");
}

Result<ValueIndex> WithBias(GraphBuilder& b, ValueIndex x, int64_t units,
                            const std::string& prefix) {
  DT_TRY(const ValueIndex product, Projected(b, x, units, prefix));
  DT_TRY(const ValueIndex bias, b.Parameter({prefix + "bias", {units}, {InitKind::kZeros, 0}}));
  return b.Add("bias_add", prefix + "bias_add", {product, bias});
}

// A transformer block (Vaswani et al., 2017): two branches, each added to its input, with layer
// norm before the branch (`pre`) or after the sum (`post`).
class Block {
 public:
  Block(GraphBuilder& b, const Heads& heads, ValueIndex mask, std::string prefix)
      : b_(b),
        heads_(heads),
        mask_(mask),
        prefix_(std::move(prefix)),
        pre_(TextAttr(b.user().attrs, "norm", "pre") == "pre") {}

  Result<ValueIndex> Attend(ValueIndex x) {
    DT_TRY(const ValueIndex from, Before(x, "attention."));
    DT_TRY(ValueIndex y, SelfAttention(b_, {from, mask_}, heads_, prefix_));
    DT_TRY(y, WithBias(b_, y, heads_.units, prefix_ + "output."));
    return After(x, y, "attention.");
  }

  Result<ValueIndex> Feed(ValueIndex x) {
    const int64_t hidden = IntAttr(b_.user().attrs, "hidden", 4 * heads_.units);
    DT_TRY(const ValueIndex from, Before(x, "feed."));
    DT_TRY(ValueIndex y, WithBias(b_, from, hidden, prefix_ + "feed.in."));
    DT_TRY(y, b_.Add("gelu", prefix_ + "feed.gelu", {y}));
    DT_TRY(y, WithBias(b_, y, heads_.units, prefix_ + "feed.out."));
    return After(x, y, "feed.");
  }

 private:
  Result<ValueIndex> Before(ValueIndex x, std::string_view branch) {
    if (!pre_) return x;
    return Norm(b_, x, fmt::format("{}{}", prefix_, branch));
  }
  Result<ValueIndex> After(ValueIndex x, ValueIndex y, std::string_view branch) {
    const std::string at = fmt::format("{}{}", prefix_, branch);
    if (heads_.dropout > 0) {
      DT_TRY(y, b_.Add("dropout", at + "dropout", {y}, {{"rate", heads_.dropout}}));
    }
    DT_TRY(const ValueIndex sum, b_.Add("add", at + "add", {x, y}));
    if (pre_) return sum;
    return Norm(b_, sum, at);
  }

  GraphBuilder& b_;
  const Heads heads_;
  const ValueIndex mask_;
  const std::string prefix_;
  const bool pre_;
};

// Blocks one after the other, as wide as their input. With `pre`, a layer norm follows the last
// block.
Result<ValueIndex> Transformer(GraphBuilder& b, Operands operands) {
  DT_TRY(Attended in, Read(b, operands));
  DT_TRY(const Heads heads, HeadsOf(b, b.shape(in.x)[2].times));
  const Attrs& attrs = b.user().attrs;
  for (int64_t i = 0; i < IntAttr(attrs, "layers", 1); ++i) {
    Block block(b, heads, in.mask, fmt::format("{}.", i));
    DT_TRY(in.x, block.Attend(in.x));
    DT_TRY(in.x, block.Feed(in.x));
  }
  if (TextAttr(attrs, "norm", "pre") == "post") return in.x;
  return Norm(b, in.x, "");
}

constexpr Composite kComposites[] = {
    {"attention", Attention}, {"layer_norm", LayerNorm}, {"transformer", Transformer}};

}  // namespace

std::span<const Composite> AttentionComposites() { return kComposites; }

}  // namespace dt::scheduler
