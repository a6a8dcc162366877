#include <numeric>

#include "scheduler/composites/composite.h"

namespace dt::scheduler {
namespace {

using Operands = std::span<const Operand>;

Result<std::vector<uint32_t>> KeyColumns(GraphBuilder& b, Operands operands) {
  std::vector<uint32_t> columns;
  for (const Operand& operand : operands) {
    if (operand.column == kNone) {
      return b.Error("{} reads columns of keys, \"{}\" is a node", b.user().op, operand.name);
    }
    if (!b.column(operand.column).is_keys()) {
      return b.Error("{} reads columns of keys, column \"{}\" holds numbers", b.user().op,
                     operand.name);
    }
    columns.push_back(operand.column);
  }
  return columns;
}

Result<ValueIndex> LookupRows(GraphBuilder& b, Operands operands) {
  DT_TRY(const std::vector<uint32_t> columns, KeyColumns(b, operands));
  for (const uint32_t c : columns) {
    if (!b.column(c).is_ragged()) continue;
    return b.Error(
        "column \"{}\" holds lists of varying length: use op: bag, which sums them, or op: "
        "sequence",
        b.column(c).name);
  }
  DT_TRY(const LookupValues in, b.Lookup(columns, ""));
  const LookupSpec spec = b.lookup_of(in.index);
  std::vector<ValueIndex> inputs = {in.rows, in.index, in.row_ends, in.row_order};
  if (spec.weighted) inputs.push_back(in.weights);
  return b.Add("gather_rows", "", std::move(inputs),
               {{"length", int64_t{spec.length}}, {"weighted", spec.weighted}});
}

// The rows of each position: as many for all, or those of a field for each.
Result<std::vector<int64_t>> RowsOfEmbedding(GraphBuilder& b, int64_t positions) {
  const std::vector<int64_t> split = IntsAttr(b.user().attrs, "manual_split");
  const int64_t rows = IntAttr(b.user().attrs, "rows", 0);
  if ((rows != 0) == !split.empty()) {
    return b.Error("embedding needs `rows`, or `manual_split` with the rows of each field");
  }
  if (rows != 0) return std::vector{rows};
  if (std::ssize(split) == positions) return split;
  return b.Error("manual_split gives the rows of {} fields, and each sample has {} ids",
                 split.size(), positions);
}

// Rows of a dense weight, each times the id's value if there are values.
Result<ValueIndex> Embedding(GraphBuilder& b, Operands operands) {
  DT_TRY(const std::vector<uint32_t> columns, KeyColumns(b, operands));
  int64_t positions = 0;
  bool weighted = false;
  for (const uint32_t c : columns) {
    if (b.column(c).is_ragged()) {
      return b.Error(
          "column \"{}\" holds lists of varying length; embedding reads as many ids of "
          "each sample",
          b.column(c).name);
    }
    positions += b.column(c).length;
    weighted = weighted || b.column(c).weighted;
  }
  DT_TRY(const std::vector<int64_t> rows, RowsOfEmbedding(b, positions));
  const Attrs& attrs = b.user().attrs;
  const int64_t all = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  const int64_t dim = IntAttr(attrs, "dim", 1);
  DT_TRY(const ValueIndex weight,
         b.Parameter({"weight", {all, dim}, InitOf(b, {InitKind::kNormal, 0.01f}), all, dim}));
  const ValueIndex ids = b.Ids(InputKind::kIds, columns, rows);
  Attrs split;
  if (rows.size() > 1 || !IntsAttr(attrs, "manual_split").empty()) split["manual_split"] = rows;
  weighted = weighted && BoolAttr(attrs, "weighted", true);
  DT_TRY(const ValueIndex taken, b.Add("embedding", "rows", {weight, ids}, split));
  if (!weighted) return taken;
  const ValueIndex values = b.Ids(InputKind::kIdWeights, columns, rows);
  DT_TRY(const ValueIndex factors,
         b.Add("reshape", "values", {values}, {{"shape", std::vector<int64_t>{-1, positions, 1}}}));
  return b.Add("mul", "", {taken, factors});
}

// The rows of a list of varying length, padded to [B, max_len, dim], with the part "mask".
Result<ValueIndex> Sequence(GraphBuilder& b, Operands operands) {
  DT_TRY(const std::vector<uint32_t> columns, KeyColumns(b, operands));
  if (columns.size() != 1) return b.Error("sequence reads one column of lists");
  const ColumnSpec& column = b.column(columns[0]);
  if (!column.is_ragged()) {
    return b.Error(
        "column \"{}\" has {} {} in every sample: use op: lookup, which keeps them apart",
        column.name, column.length, column.length == 1 ? "key" : "keys");
  }
  const int64_t max_len = IntAttr(b.user().attrs, "max_len", int64_t{column.max_len});
  if (max_len == 0) {
    return b.Error(
        "column \"{}\" says no max_len; give it here or there: the longest list that is "
        "kept",
        column.name);
  }
  const Attrs length = {{"length", max_len}};
  DT_TRY(const LookupValues in, b.Lookup(columns, ""));
  const bool weighted = b.lookup_of(in.index).weighted;
  std::vector<ValueIndex> inputs = {in.rows, in.index, in.row_ends, in.row_order};
  if (weighted) inputs.push_back(in.weights);
  DT_TRY(const ValueIndex rows, b.Add("gather_rows", "rows", std::move(inputs),
                                      {{"ragged", true}, {"weighted", weighted}}));
  DT_TRY(const ValueIndex mask, b.Add("lengths_mask", "mask", {in.ends}, length));
  b.NamePart("mask", mask);
  return b.Add("ragged_to_padded", "", {rows, in.ends}, length);
}

Result<ValueIndex> BagOf(GraphBuilder& b, const std::vector<uint32_t>& columns,
                         std::string_view part) {
  DT_TRY(const LookupValues in, b.Lookup(columns, part));
  const LookupSpec spec = b.lookup_of(in.index);
  const bool ragged = spec.length == 0;
  std::vector<ValueIndex> inputs = {in.rows, in.index, in.row_ends, in.row_order};
  if (ragged) inputs.push_back(in.ends);
  if (spec.weighted) inputs.push_back(in.weights);
  return b.Add("bag", part, std::move(inputs),
               {{"ragged", ragged},
                {"weighted", spec.weighted},
                {"length", int64_t{spec.length}},
                {"combiner", TextAttr(b.user().attrs, "combiner", "sum")}});
}

Result<ValueIndex> Bag(GraphBuilder& b, Operands operands) {
  DT_TRY(const std::vector<uint32_t> columns, KeyColumns(b, operands));
  return BagOf(b, columns, "");
}

// Adds sums of weights: one bag for all columns of fixed length, one for each ragged column.
Status AddBags(GraphBuilder& b, const std::vector<uint32_t>& keys, std::vector<ValueIndex>& terms) {
  if (keys.empty()) return OkStatus();
  if (!b.user().attrs.contains("table")) {
    return b.Error("column \"{}\" holds keys, so linear needs the attribute \"table\"",
                   b.column(keys.front()).name);
  }
  std::vector<uint32_t> fixed;
  for (const uint32_t c : keys) {
    if (!b.column(c).is_ragged()) {
      fixed.push_back(c);
      continue;
    }
    DT_TRY(const ValueIndex bag, BagOf(b, {c}, b.column(c).name));
    terms.push_back(bag);
  }
  if (fixed.empty()) return OkStatus();
  DT_TRY(const ValueIndex bag, BagOf(b, fixed, "bag"));
  terms.insert(terms.begin(), bag);
  return OkStatus();
}

// w · x + b over keys (whose weights are in a table), floats and nodes.
Result<ValueIndex> Linear(GraphBuilder& b, Operands operands) {
  std::vector<uint32_t> keys;
  std::vector<Operand> numbers;
  for (const Operand& operand : operands) {
    const bool is_key = operand.column != kNone && b.column(operand.column).is_keys();
    if (is_key) {
      keys.push_back(operand.column);
    } else {
      numbers.push_back(operand);
    }
  }
  std::vector<ValueIndex> terms;
  DT_TRY_STATUS(AddBags(b, keys, terms));
  const int64_t units = terms.empty() ? 1 : b.shape(terms[0])[1].times;
  if (!numbers.empty()) {
    DT_TRY(std::vector<ValueIndex> values, b.Values(numbers, true));
    DT_TRY(const ValueIndex x, b.Flat(std::move(values), ""));
    DT_TRY(const ValueIndex y, DenseLayer(b, x, units, ""));
    terms.push_back(y);
  }
  DT_TRY(const ValueIndex sum, SumOf(b, terms));
  if (!numbers.empty() || !BoolAttr(b.user().attrs, "bias", true)) return sum;
  DT_TRY(const ValueIndex bias, b.Parameter({"bias", {units}, {InitKind::kZeros, 0}}));
  return b.Add("bias_add", "bias_add", {sum, bias});
}

constexpr Composite kComposites[] = {{"bag", Bag},
                                     {"embedding", Embedding},
                                     {"linear", Linear},
                                     {"lookup", LookupRows},
                                     {"sequence", Sequence}};

}  // namespace

std::span<const Composite> LookupComposites() { return kComposites; }

}  // namespace dt::scheduler
