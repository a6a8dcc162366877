#include "worker/data/parquet/batch_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "worker/data/format/number.h"
#include "worker/data/parquet/column_values.h"

namespace dt::worker {
namespace {

// The rows that are filled column by column; their records fit the second-level cache.
constexpr size_t kTileRows = 128;

bool IsListColumn(const ArrowColumn& column) { return column.type >= ArrowType::kList; }

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

std::string_view Expected(const ColumnSpec& column) {
  if (!column.is_keys()) return "a finite number";
  if (column.transform == "bucket") return "an integer of at most 64 bits";
  return column.type == ColumnType::kId || column.type == ColumnType::kIds ? kIdExpected : "a text";
}

}  // namespace

// Fills the rows of one batch, tile by tile.
class BatchRows::Filler {
 public:
  Filler(const BatchRows& rows, const ArrowBatch& batch, BlockResult& out)
      : rows_(rows), batch_(batch), out_(out), sources_(columns().size()), lists_(sources_.size()) {
    for (size_t c = 0; c < columns().size(); ++c) {
      if (rows_.column_of_[c] == kNoColumn) continue;
      const ArrowColumn& from = Column(c);
      sources_[c].emplace(columns()[c], IsListColumn(from) ? *from.items : from, rows_.logs_);
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
  std::byte* Record(size_t row) { return records_ + row * rows_.layout_.record_bytes(); }

  void FillColumn(size_t c) {
    if (!sources_[c].has_value()) {
      FillAbsent(c);
    } else if (TakesLists(columns()[c])) {
      const ArrowColumn& from = Column(c);
      lists_[c].begin = ItemsBegin(from, begin_);
      const uint64_t items = ItemsBegin(from, begin_ + count_) - lists_[c].begin;
      sources_[c]->Load(lists_[c].begin, items, lists_[c].items);
    } else {
      sources_[c]->Load(begin_, count_, values_);
      if (!values_.all_good) Settle(c);
      Store(c);
    }
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
      if (values_.states[i] == ValueState::kGood || ReplaceNull(column, i, values_)) continue;
      Drop(i, CellError(column.name, sources_[c]->TextOf(begin_ + i), Expected(column)));
    }
  }

  // Replaces value i if it is a null for which the column has a value.
  bool ReplaceNull(const ColumnSpec& column, size_t i, Values& values) const {
    if (values.states[i] != ValueState::kNull) return false;
    if (!column.is_keys()) {
      values.floats[i] = AbsentValue(column);
      return column.role == ColumnRole::kFeature || rows_.labels_optional_;
    }
    if (column.transform == "bucket") {
      values.keys[i] = BucketKey(column, std::nullopt);
      return true;
    }
    values.keys[i] = TextKey(column, "");
    return column.type == ColumnType::kString || column.type == ColumnType::kStrings;
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

  void PutList(size_t c, size_t i) {
    const ColumnSpec& column = columns()[c];
    const ArrowColumn& from = Column(c);
    const uint64_t begin = ItemsBegin(from, begin_ + i);
    const bool is_null = IsNull(from, begin_ + i);
    const uint64_t end = is_null ? begin : ItemsBegin(from, begin_ + i + 1);
    Values& items = lists_[c].items;
    const size_t first = begin - lists_[c].begin, count = end - begin;
    for (size_t k = first; k < first + count && !items.all_good; ++k) {
      if (items.states[k] == ValueState::kGood || ReplaceNull(column, k, items)) continue;
      const std::string found = sources_[c]->TextOf(lists_[c].begin + k);
      return Drop(i, CellError(column.name, found, Expected(column)));
    }
    if (is_null && column.is_vector()) {
      return Refill(Record(i) + rows_.layout_.slot(c).value, column);
    }
    const bool fits =
        column.is_vector()
            ? out_.block.PutFloatsAt(Record(i), c, {items.floats.data() + first, count})
            : out_.block.PutKeysAt(Record(i), c, {items.keys.data() + first, count}, {});
    if (fits) return;
    Drop(i, CellError(column.name, fmt::format("{} items", count),
                      fmt::format("{} items", column.length)));
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
  Values values_;                                     // The values of the column in work.
  // The tile.
  uint64_t begin_ = 0;
  size_t count_ = 0;
  std::byte* records_ = nullptr;
  std::array<bool, kTileRows> keep_ = {};
  size_t first_bad_ = kTileRows;  // The first row that is dropped, and why.
  std::string error_;
};

BatchRows::BatchRows(const RowLayout& layout, std::vector<size_t> column_of, bool labels_optional)
    : layout_(layout),
      column_of_(std::move(column_of)),
      labels_optional_(labels_optional),
      crossings_(layout),
      has_lists_(std::ranges::any_of(layout.columns(), TakesLists)) {}

void BatchRows::Append(const ArrowBatch& batch, BlockResult& out) const {
  Filler(*this, batch, out).FillAll();
}

}  // namespace dt::worker
