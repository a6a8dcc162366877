// Composites over sequences [B, length, dim], and over parts of a tensor.
#include "scheduler/composites/composite.h"

namespace dt::scheduler {
namespace {

using Operands = std::span<const Operand>;
using Ints = std::vector<int64_t>;

// A candidate (query) and the history it is compared with (keys).
struct Attended {
  ValueIndex query = kNone;  // [B, D]
  ValueIndex keys = kNone;   // [B, L, D]
  ValueIndex mask = kNone;   // [B, L]; kNone if every position counts.
  int64_t length = 0, dim = 0;
};

Result<Attended> AttendedOf(GraphBuilder& b, Operands operands) {
  if (operands.size() < 2 || operands.size() > 3) {
    return b.Error("din_attention takes a query, keys and their mask, has {} inputs",
                   operands.size());
  }
  DT_TRY(const std::vector<ValueIndex> values, b.Values(operands, false));
  Attended in;
  DT_TRY(in.query, b.Flat({values[0]}, "query"));
  in.keys = values[1];
  const SymShape keys = b.shape(in.keys), query = b.shape(in.query);
  if (keys.size() != 3 || keys[1].symbol != kConstant || keys[2] != query[1]) {
    return b.Error("its keys \"{}\" have shape {}, a query of shape {} needs [B, length, {}]",
                   operands[1].name, ShapeText(b.graph(), keys), ShapeText(b.graph(), query),
                   query[1].times);
  }
  in.length = keys[1].times, in.dim = keys[2].times;
  if (values.size() == 3) {
    in.mask = values[2];
    const SymShape wanted = {keys[0], keys[1]};
    if (b.shape(in.mask) == wanted) return in;
    return b.Error("its mask \"{}\" has shape {}, expected {}", operands[2].name,
                   ShapeText(b.graph(), b.shape(in.mask)), ShapeText(b.graph(), wanted));
  }
  const NodeIndex made_by = b.graph().value(in.keys).producer;
  if (made_by != kNone && b.graph().nodes[made_by].op == "ragged_to_padded") {
    return b.Error("the lists of \"{0}\" vary in length: add \"{0}.mask\" to its inputs",
                   operands[1].name);
  }
  return in;
}

// The score of each position, [B, L]: a perceptron over query, key, their difference and their
// product.
Result<ValueIndex> Scores(GraphBuilder& b, const Attended& in) {
  DT_TRY(const ValueIndex query,
         b.Add("reshape", "query", {in.query}, {{"shape", Ints{-1, 1, in.dim}}}));
  DT_TRY(const ValueIndex repeated, b.Add("broadcast_to", "repeated", {query, in.keys}));
  DT_TRY(const ValueIndex difference, b.Add("sub", "difference", {query, in.keys}));
  DT_TRY(const ValueIndex product, b.Add("mul", "product", {query, in.keys}));
  DT_TRY(
      const ValueIndex joined,
      b.Add("concat", "joined", {repeated, in.keys, difference, product}, {{"axis", int64_t{2}}}));
  DT_TRY(ValueIndex x,
         b.Add("reshape", "positions", {joined}, {{"shape", Ints{-in.length, 4 * in.dim}}}));
  const Attrs& attrs = b.user().attrs;
  Ints units = IntsAttr(attrs, "units");
  if (units.empty()) units = {80, 40};
  for (size_t i = 0; i < units.size(); ++i) {
    const std::string prefix = fmt::format("{}.", i);
    DT_TRY(x, DenseLayer(b, x, units[i], prefix));
    DT_TRY(x, Activate(b, x, TextAttr(attrs, "activation", "sigmoid"), prefix));
  }
  DT_TRY(x, DenseLayer(b, x, 1, "score."));
  return b.Add("reshape", "scores", {x}, {{"shape", Ints{-1, in.length}}});
}

// Zhou et al., "Deep Interest Network for Click-Through Rate Prediction" (2018): the sum of the
// keys, weighted by a perceptron's output for each key and the query. [B, D]
Result<ValueIndex> DinAttention(GraphBuilder& b, Operands operands) {
  DT_TRY(const Attended in, AttendedOf(b, operands));
  DT_TRY(ValueIndex weights, Scores(b, in));
  const bool softmax = BoolAttr(b.user().attrs, "softmax", false);
  if (in.mask != kNone) {
    DT_TRY(weights, b.Add(softmax ? "masked_softmax" : "mul", "masked", {weights, in.mask}));
  } else if (softmax) {
    DT_TRY(weights, b.Add("softmax", "softmax", {weights}));
  }
  DT_TRY(const ValueIndex column,
         b.Add("reshape", "weights", {weights}, {{"shape", Ints{-1, in.length, 1}}}));
  DT_TRY(const ValueIndex weighted, b.Add("mul", "weighted", {column, in.keys}));
  return b.Add("reduce_sum", "", {weighted}, {{"axis", Ints{1}}});
}

// Consecutive pieces of one dimension, named "<node>.0", "<node>.1", …; the node itself is its
// input.
Result<ValueIndex> Split(GraphBuilder& b, Operands operands) {
  DT_TRY(const std::vector<ValueIndex> values, b.Values(operands, true));
  if (values.size() != 1) return b.Error("split takes 1 input, has {}", values.size());
  const SymShape shape = b.shape(values[0]);
  const auto rank = std::ssize(shape);
  const int64_t written = IntAttr(b.user().attrs, "axis", -1);
  const int64_t axis = written < 0 ? written + rank : written;
  const Ints sizes = IntsAttr(b.user().attrs, "sizes");
  int64_t total = 0;
  for (const int64_t size : sizes) total += size;
  if (axis < 0 || axis >= rank || shape[static_cast<size_t>(axis)] != Const(total)) {
    return b.Error("the sizes are {} together, which is not dimension {} of {}", total, written,
                   ShapeText(b.graph(), shape));
  }
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string part = fmt::format("{}", i);
    DT_TRY(const ValueIndex piece,
           b.Add("slice", part, {values[0]},
                 {{"axis", axis}, {"begin", begin}, {"end", begin + sizes[i]}}));
    b.NamePart(part, piece);
    begin += sizes[i];
  }
  return values[0];
}

constexpr Composite kComposites[] = {{"din_attention", DinAttention, 2}, {"split", Split}};

}  // namespace

std::span<const Composite> SequenceComposites() { return kComposites; }

}  // namespace dt::scheduler
