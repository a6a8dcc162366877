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
    const bool can = column.transform.empty() ||
                     (column.transform == "log" && column.type == ColumnType::kFloat) ||
                     (column.transform == "bucket" && column.type == ColumnType::kId) ||
                     (column.transform == "named" && column.is_keys()) ||
                     (column.is_crossed() && column.type == ColumnType::kId);
    if (!can) {
      return Invalid(
          "data.columns: column \"{}\": transform \"{}\" found; \"log\" for type float, "
          "\"bucket\" or \"crossed\" for type id or \"named\" for keys expected",
          column.name, column.transform);
    }
    if (column.weighted) {
      return Invalid("data.columns: column \"{}\": weighted found, which is for libsvm and libffm",
                     column.name);
    }
  }
  return OkStatus();
}

Key TextKey(const ColumnSpec& column, std::string_view text) {
  return column.transform.empty() ? HashString(text) : NamedKey(column, text);
}

Key IdKey(const ColumnSpec& column, uint64_t id) {
  return column.transform == "named" ? NamedKey(column, id) : id;
}

Key BucketKey(const ColumnSpec& column, std::optional<int64_t> value) {
  return value.has_value() ? NamedKey(column, BucketOf(*value)) : NamedKey(column, "");
}

SignedLogs::SignedLogs() : small_(kSmallIntegers) {
  for (size_t i = 0; i < kSmallIntegers; ++i) small_[i] = SignedLog(static_cast<float>(i));
}

float SignedLogs::operator()(float value) const {
  const bool small =
      value >= 0 && value < static_cast<float>(kSmallIntegers) && value == std::floor(value);
  return small ? small_[static_cast<size_t>(value)] : SignedLog(value);
}

Crossings::Crossings(const RowLayout& layout) {
  const std::vector<ColumnSpec>& columns = layout.columns();
  for (size_t c = 0; c < columns.size(); ++c) {
    if (!columns[c].is_crossed()) continue;
    Crossing& crossing =
        crossings_.emplace_back(Crossing{.name = columns[c].name, .to = layout.slot(c).value});
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
    const Key key = HashOf(text);
    std::memcpy(record + crossing.to, &key, sizeof key);
  }
}

}  // namespace dt::worker
