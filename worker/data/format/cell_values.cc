#include "worker/data/format/cell_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "common/base/hash.h"
#include "worker/data/format/number.h"

namespace dt::worker {
namespace {

constexpr size_t kSmallIntegers = 4096;

Key HashOf(const fmt::memory_buffer& text) { return HashString({text.data(), text.size()}); }

template <class Cell>
Key NamedKey(const ColumnSpec& column, const Cell& cell) {
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), "{}={}", column.name, cell);
  return HashOf(text);
}

// floor(ln(v)²) for integers above 2, other integers unchanged: the usual buckets of Criteo's
// counts.
int64_t BucketOf(int64_t v) {
  if (v <= 2) return v;
  const double log = std::log(static_cast<double>(v));
  return static_cast<int64_t>(log * log);
}

}  // namespace

Status CheckListedColumns(const std::vector<ColumnSpec>& columns) {
  if (columns.empty()) return Invalid("data.columns: nothing found, the columns to read expected");
  for (const ColumnSpec& column : columns) {
    const bool of_ids =
        column.transform == "bucket" || column.is_crossed() || column.is_time_part();
    const bool can = column.transform.empty() ||
                     (column.transform == "log" && column.type == ColumnType::kFloat) ||
                     (of_ids && column.type == ColumnType::kId) ||
                     (column.transform == "named" && column.is_keys());
    if (!can) {
      return Invalid(
          "data.columns: column \"{}\": transform \"{}\" found; \"log\" for type float, "
          "\"bucket\", \"crossed\" or a part of a time for type id or \"named\" for keys expected",
          column.name, column.transform);
    }
    if (column.weighted && column.weights.empty()) {
      return Invalid("data.columns: column \"{}\": weighted found, which is for libsvm and libffm",
                     column.name);
    }
  }
  return OkStatus();
}

SignedLogs::SignedLogs() : small_(kSmallIntegers) {
  for (size_t i = 0; i < kSmallIntegers; ++i) small_[i] = SignedLog(static_cast<float>(i));
}

float SignedLogs::operator()(float value) const {
  const bool small =
      value >= 0 && value < static_cast<float>(kSmallIntegers) && value == std::floor(value);
  return small ? small_[static_cast<size_t>(value)] : SignedLog(value);
}

CellConverter::CellConverter(const ColumnSpec& column, const SignedLogs& logs)
    : column_(column),
      logs_(logs),
      named_(column.transform == "named"),
      logs_number_(column.transform == "log") {
  is_plain_ = !named_ && column.hash == 0;
  changes_number_ = logs_number_ || column.standardise || !column.clip.empty();
  const bool is_id = column.type == ColumnType::kId;
  if (column.type == ColumnType::kFloat) {
    kind_ = Kind::kNumber;
  } else if (column.type == ColumnType::kString || column.type == ColumnType::kStrings) {
    kind_ = Kind::kText;
  } else if (is_id && column.transform == "bucket") {
    kind_ = Kind::kBucket;
  } else if (is_id && column.is_binned()) {
    kind_ = Kind::kBin;
  } else if (is_id && column.is_time_part()) {
    kind_ = Kind::kTime;
    part_ = column.transform == "hour"      ? TimePart::kHour
            : column.transform == "weekday" ? TimePart::kWeekday
            : column.transform == "day"     ? TimePart::kDay
                                            : TimePart::kMonth;
  } else {
    kind_ = Kind::kId;
  }
}

float CellConverter::Changed(float value) const {
  if (!column_.clip.empty()) value = std::clamp(value, column_.clip[0], column_.clip[1]);
  if (logs_number_) value = logs_(value);
  if (!column_.standardise) return value;
  return column_.deviation == 0 ? 0 : (value - column_.mean) / column_.deviation;
}

Key CellConverter::NamedText(std::string_view text) const { return NamedKey(column_, text); }
Key CellConverter::NamedId(uint64_t id) const { return NamedKey(column_, id); }

Key CellConverter::OfBucket(std::optional<int64_t> value) const {
  return Hashed(value.has_value() ? NamedKey(column_, BucketOf(*value)) : NamedKey(column_, ""));
}

Key CellConverter::OfBin(std::optional<float> value) const {
  if (!value.has_value()) return Hashed(NamedKey(column_, ""));
  const auto above = std::ranges::upper_bound(column_.edges, *value);
  return Hashed(NamedKey(column_, above - column_.edges.begin()));
}

std::string WeightsError(const ColumnSpec& column, size_t weights, size_t items) {
  return CellError(column.name, fmt::format("{} weights for {} items", weights, items),
                   "one for each item");
}

std::vector<CellConverter> ConvertersOf(const RowLayout& layout, const SignedLogs& logs) {
  std::vector<CellConverter> all;
  for (const ColumnSpec& column : layout.columns()) all.emplace_back(column, logs);
  return all;
}

Crossings::Crossings(const RowLayout& layout) {
  const std::vector<ColumnSpec>& columns = layout.columns();
  for (size_t c = 0; c < columns.size(); ++c) {
    if (!columns[c].is_crossed()) continue;
    Crossing& crossing = crossings_.emplace_back(
        Crossing{.name = columns[c].name, .hash = columns[c].hash, .to = layout.slot(c).value});
    for (const std::string& name : columns[c].of) {
      const auto operand = std::ranges::find(columns, name, &ColumnSpec::name);
      crossing.from.push_back(layout.slot(static_cast<size_t>(operand - columns.begin())).value);
    }
  }
}

// The key is the hash of the column's name and its operands' keys, one after the other: two
// crossings in one table share no rows, and the order of operands counts.
void Crossings::Put(std::byte* record) const {
  for (const Crossing& crossing : crossings_) {
    fmt::memory_buffer text;
    fmt::format_to(std::back_inserter(text), "{}=", crossing.name);
    for (const uint32_t from : crossing.from) {
      const auto* const key = reinterpret_cast<const char*>(record + from);
      text.append(key, key + sizeof(Key));
    }
    const Key key = HashedKey(HashOf(text), crossing.hash);
    std::memcpy(record + crossing.to, &key, sizeof key);
  }
}

}  // namespace dt::worker
