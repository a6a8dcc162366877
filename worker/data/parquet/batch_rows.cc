#include "worker/data/parquet/batch_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "worker/data/format/number.h"
#include "worker/data/parquet/column_values.h"

namespace dt::worker {
namespace {

// The rows that are filled column by column; their records fit the second-level cache.
constexpr size_t kTileRows = 128;

// The items of all lists, or the values of a column of single ones.
const ArrowColumn& ItemsOf(const ArrowColumn& column) {
  return column.type >= ArrowType::kList ? *column.items : column;
}

// Where the items of a row begin. A column of single values has one item for each row.
uint64_t ItemsBegin(const ArrowColumn& column, uint64_t row) {
  switch (column.type) {
    case ArrowType::kList:
      return static_cast<uint64_t>(static_cast<const int32_t*>(column.ends)[row]);
    case ArrowType::kLargeList:
      return static_cast<uint64_t>(static_cast<const int64_t*>(column.ends)[row]);
    case ArrowType::kFixedList:
      return row * column.list_size;
    default:
      return row;
  }
}

std::string_view Expected(CellConverter::Kind kind) {
  switch (kind) {
    case CellConverter::Kind::kNumber:
    case CellConverter::Kind::kBin:
      return "a finite number";
    case CellConverter::Kind::kBucket:
      return "an integer of at most 64 bits";
    case CellConverter::Kind::kTime:
      return kTimeExpected;
    case CellConverter::Kind::kText:
      return "a text";
    case CellConverter::Kind::kId:
      break;
  }
  return kIdExpected;
}

}  // namespace

// Fills the rows of one batch, tile by tile.
class BatchRows::Filler {
 public:
  Filler(const BatchRows& rows, const ArrowBatch& batch, BlockResult& out)
      : rows_(rows),
        batch_(batch),
        out_(out),
        sources_(columns().size()),
        lists_(sources_.size()),
        weight_sources_(sources_.size()),
        weights_(sources_.size()) {
    for (size_t c = 0; c < columns().size(); ++c) {
      if (rows_.column_of_[c] == kNoColumn) continue;
      sources_[c].emplace(columns()[c], rows_.converters_[c], ItemsOf(Column(c)));
      if (!columns()[c].weighted) continue;
      weight_sources_[c].emplace(rows_.weight_, rows_.weight_converter_, ItemsOf(Weights(c)));
    }
  }

  void FillAll() {
    for (begin_ = 0; begin_ < batch_.rows; begin_ += count_) {
      count_ = std::min<size_t>(kTileRows, batch_.rows - begin_);
      records_ = out_.block.StartRows(count_);
      keep_.fill(true);
      for (size_t c = 0; c < columns().size(); ++c) {
        if (!columns()[c].is_crossed()) FillColumn(c);
      }
      if (rows_.has_lists_) PutLists();
      if (!rows_.crossings_.empty()) PutCrossings();
      out_.block.KeepRows({keep_.data(), count_});
      CountBad();
      out_.lines += count_;
    }
  }

 private:
  struct List {
    Values items;
    uint64_t begin = 0;  // The number of the first of `items` in the column.
  };

  const std::vector<ColumnSpec>& columns() const { return rows_.layout_.columns(); }
  const ArrowColumn& Column(size_t c) const { return batch_.columns[rows_.column_of_[c]]; }
  const ArrowColumn& Weights(size_t c) const { return batch_.columns[rows_.weights_of_[c]]; }
  std::byte* Record(size_t row) { return records_ + row * rows_.layout_.record_bytes(); }

  void FillColumn(size_t c) {
    if (!sources_[c].has_value()) {
      FillAbsent(c);
    } else if (TakesLists(columns()[c])) {
      LoadLists(Column(c), *sources_[c], lists_[c]);
      if (columns()[c].weighted) LoadLists(Weights(c), *weight_sources_[c], weights_[c]);
    } else {
      sources_[c]->Load(begin_, count_, values_);
      if (!values_.all_good) Settle(c);
      Store(c);
    }
  }

  void LoadLists(const ArrowColumn& from, ColumnValues& source, List& out) const {
    out.begin = ItemsBegin(from, begin_);
    source.Load(out.begin, ItemsBegin(from, begin_ + count_) - out.begin, out.items);
  }

  // A label or weight that samples do not need.
  void FillAbsent(size_t c) {
    values_.floats.assign(count_, AbsentValue(columns()[c]));
    Store(c);
  }
  float AbsentValue(const ColumnSpec& column) const {
    if (column.role == ColumnRole::kFeature) return column.fill;
    return column.role == ColumnRole::kLabel ? kNoLabel : 1.0f;
  }

  void Store(size_t c) {
    const size_t step = rows_.layout_.record_bytes();
    std::byte* to = records_ + rows_.layout_.slot(c).value;
    if (columns()[c].is_keys()) {
      for (size_t i = 0; i < count_; ++i, to += step) {
        std::memcpy(to, &values_.keys[i], sizeof(Key));
      }
    } else {
      for (size_t i = 0; i < count_; ++i, to += step) {
        std::memcpy(to, &values_.floats[i], sizeof(float));
      }
    }
  }

  // Replaces nulls, and drops the rows of values that the column cannot have.
  void Settle(size_t c) {
    const ColumnSpec& column = columns()[c];
    for (size_t i = 0; i < count_; ++i) {
      if (values_.states[i] == ValueState::kGood || ReplaceNull(c, i, values_)) continue;
      const std::string_view expected = Expected(rows_.converters_[c].kind());
      Drop(i, CellError(column.name, sources_[c]->TextOf(begin_ + i), expected));
    }
  }

  // Replaces value i if it is a null for which the column has a value.
  bool ReplaceNull(size_t c, size_t i, Values& values) const {
    if (values.states[i] != ValueState::kNull) return false;
    const ColumnSpec& column = columns()[c];
    const CellConverter& converter = rows_.converters_[c];
    switch (converter.kind()) {
      case CellConverter::Kind::kNumber:
        values.floats[i] = AbsentValue(column);
        return column.role == ColumnRole::kFeature || rows_.labels_optional_;
      case CellConverter::Kind::kBucket:
        values.keys[i] = converter.OfBucket(std::nullopt);
        return true;
      case CellConverter::Kind::kBin:
        values.keys[i] = converter.OfBin(std::nullopt);
        return true;
      case CellConverter::Kind::kText:
        values.keys[i] = converter.OfText("");
        return true;
      default:
        return false;
    }
  }

  // Lists of a row lie side by side in the heap, so they are put row by row.
  void PutLists() {
    for (size_t i = 0; i < count_; ++i) {
      if (!keep_[i]) continue;
      out_.block.StartLists(Record(i));
      for (size_t c = 0; c < columns().size() && keep_[i]; ++c) {
        if (TakesLists(columns()[c])) PutList(c, i);
      }
      if (!keep_[i]) out_.block.DropLists();
    }
  }

  // The items of row i among those of the tile.
  struct Items {
    size_t first = 0, count = 0;
    bool is_null = false;
  };
  Items ItemsOfRow(const ArrowColumn& from, const List& list, size_t i) const {
    const uint64_t begin = ItemsBegin(from, begin_ + i);
    const bool is_null = IsNull(from, begin_ + i);
    const uint64_t end = is_null ? begin : ItemsBegin(from, begin_ + i + 1);
    return {begin - list.begin, end - begin, is_null};
  }

  void PutList(size_t c, size_t i) {
    const ColumnSpec& column = columns()[c];
    Values& items = lists_[c].items;
    const auto [first, count, is_null] = ItemsOfRow(Column(c), lists_[c], i);
    for (size_t k = first; k < first + count && !items.all_good; ++k) {
      if (items.states[k] == ValueState::kGood || ReplaceNull(c, k, items)) continue;
      const std::string found = sources_[c]->TextOf(lists_[c].begin + k);
      return Drop(i, CellError(column.name, found, Expected(rows_.converters_[c].kind())));
    }
    if (is_null && column.is_vector()) {
      return Refill(Record(i) + rows_.layout_.slot(c).value, column);
    }
    std::span<const float> weights;
    if (column.weighted && !TakeWeights(c, i, count, weights)) return;
    const bool fits =
        column.is_vector()
            ? out_.block.PutFloatsAt(Record(i), c, {items.floats.data() + first, count})
            : out_.block.PutKeysAt(Record(i), c, {items.keys.data() + first, count}, weights);
    if (fits) return;
    Drop(i, CellError(column.name, fmt::format("{} items", count),
                      fmt::format("{} items", column.length)));
  }

  // The weights of row i; false if they do not fit its `count` items, and the row is dropped.
  bool TakeWeights(size_t c, size_t i, size_t count, std::span<const float>& out) {
    const ColumnSpec& column = columns()[c];
    const Values& values = weights_[c].items;
    const Items items = ItemsOfRow(Weights(c), weights_[c], i);
    for (size_t k = items.first; k < items.first + items.count && !values.all_good; ++k) {
      if (values.states[k] == ValueState::kGood) continue;
      const std::string found = weight_sources_[c]->TextOf(weights_[c].begin + k);
      Drop(i, CellError(column.weights, found, "a finite number"));
      return false;
    }
    out = {values.floats.data() + items.first, items.count};
    if (items.count == count) return true;
    Drop(i, WeightsError(column, items.count, count));
    return false;
  }

  static void Refill(std::byte* to, const ColumnSpec& column) {
    for (uint32_t k = 0; k < column.length; ++k, to += sizeof(float)) {
      std::memcpy(to, &column.fill, sizeof(float));
    }
  }

  void PutCrossings() {
    for (size_t i = 0; i < count_; ++i) {
      if (keep_[i]) rows_.crossings_.Put(Record(i));
    }
  }

  void Drop(size_t row, std::string error) {
    keep_[row] = false;
    if (row >= first_bad_) return;
    first_bad_ = row;
    error_ = std::move(error);
  }

  void CountBad() {
    if (first_bad_ == kTileRows) return;
    if (out_.bad_lines == 0) {
      out_.first_bad = out_.lines + first_bad_;
      out_.first_error = std::move(error_);
    }
    out_.bad_lines += static_cast<uint64_t>(
        std::count(keep_.begin(), keep_.begin() + static_cast<ptrdiff_t>(count_), false));
    first_bad_ = kTileRows;
  }

  const BatchRows& rows_;
  const ArrowBatch& batch_;
  BlockResult& out_;
  std::vector<std::optional<ColumnValues>> sources_;  // By column of the layout.
  std::vector<List> lists_;                           // The items of the tile, by column.
  std::vector<std::optional<ColumnValues>> weight_sources_;
  std::vector<List> weights_;  // The weights of the items.
  Values values_;              // The values of the column in work.
  // The tile.
  uint64_t begin_ = 0;
  size_t count_ = 0;
  std::byte* records_ = nullptr;
  std::array<bool, kTileRows> keep_ = {};
  size_t first_bad_ = kTileRows;  // The first row that is dropped, and why.
  std::string error_;
};

BatchRows::BatchRows(const RowLayout& layout, std::vector<size_t> column_of, bool labels_optional,
                     std::vector<size_t> weights_of)
    : layout_(layout),
      column_of_(std::move(column_of)),
      weights_of_(std::move(weights_of)),
      labels_optional_(labels_optional),
      crossings_(layout),
      converters_(ConvertersOf(layout, logs_)),
      weight_converter_(weight_, logs_),
      has_lists_(std::ranges::any_of(layout.columns(), TakesLists)) {}

void BatchRows::Append(const ArrowBatch& batch, BlockResult& out) const {
  Filler(*this, batch, out).FillAll();
}

}  // namespace dt::worker
