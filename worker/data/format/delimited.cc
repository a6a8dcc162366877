#include "worker/data/format/delimited.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/base/hash.h"
#include "worker/data/format/number.h"

namespace dt::worker {
namespace {

constexpr size_t kSmallIntegers = 4096;
constexpr std::string_view kIdExpected = "an id from 0 to 18446744073709551615";

// False if a quote is not closed, or is followed by anything but a delimiter. Quoted cells are
// copied to scratch.unquoted, which must not move: it has room for the whole line.
bool SplitQuoted(std::string_view line, char delimiter, RowScratch& scratch) {
  scratch.cells.clear();
  scratch.unquoted.clear();
  scratch.unquoted.reserve(line.size());
  for (size_t at = 0;;) {
    if (at < line.size() && line[at] == '"') {
      const size_t start = scratch.unquoted.size();
      for (++at;; ++at) {
        const size_t quote = line.find('"', at);
        if (quote == std::string_view::npos) return false;
        scratch.unquoted.append(line, at, quote - at);
        at = quote + 1;
        if (at >= line.size() || line[at] != '"') break;
        scratch.unquoted += '"';
      }
      scratch.cells.push_back(std::string_view(scratch.unquoted).substr(start));
      if (at < line.size() && line[at] != delimiter) return false;
    } else {
      const size_t end = std::min(line.find(delimiter, at), line.size());
      scratch.cells.push_back(line.substr(at, end - at));
      at = end;
    }
    if (at >= line.size()) return true;
    ++at;  // A delimiter at the end of the line is followed by an empty cell.
    if (at == line.size()) {
      scratch.cells.emplace_back();
      return true;
    }
  }
}

void SplitPlain(std::string_view line, char delimiter, std::vector<std::string_view>& cells) {
  cells.clear();
  const char* start = line.data();
  const char* const end = start + line.size();
  for (const char* at = start; at < end; ++at) {
    if (*at != delimiter) continue;
    cells.emplace_back(start, static_cast<size_t>(at - start));
    start = at + 1;
  }
  cells.emplace_back(start, static_cast<size_t>(end - start));
}

bool SplitCells(std::string_view line, char delimiter, RowScratch& scratch) {
  if (delimiter != '\t' && line.find('"') != std::string_view::npos) {
    return SplitQuoted(line, delimiter, scratch);
  }
  SplitPlain(line, delimiter, scratch.cells);
  return true;
}

// floor(ln(v)²) for integers above 2, other integers unchanged: the usual buckets of Criteo's
// counts.
int64_t BucketOf(int64_t v) {
  if (v <= 2) return v;
  const double log = std::log(static_cast<double>(v));
  return static_cast<int64_t>(log * log);
}

// Advice about a cell that is no id: "255.0" was a whole number before some tool wrote it.
std::string IdAdvice(const ColumnSpec& column, std::string_view cell) {
  const std::string_view texts = column.type == ColumnType::kIds ? "strings" : "string";
  float number = 0;
  if (cell.empty()) return "";
  if (!ParseFloat(cell, number)) return fmt::format("; a column of texts has type: {}", texts);
  const size_t point = cell.find('.');
  uint64_t whole = 0;
  const bool zeros = point != cell.npos && cell.find_first_not_of('0', point + 1) == cell.npos;
  if (zeros && ParseU64(cell.substr(0, point), whole)) {
    return fmt::format("; it is a float: write {}, or set type: float", whole);
  }
  return fmt::format("; set type: float for a number, or type: {} for a key made of its text",
                     texts);
}

class DelimitedDecoder : public LineDecoder {
 public:
  DelimitedDecoder(std::vector<ColumnSpec> columns, DelimitedOptions options)
      : LineDecoder(RowLayout(std::move(columns))), options_(std::move(options)) {
    small_logs_.resize(kSmallIntegers);
    for (size_t i = 0; i < kSmallIntegers; ++i) {
      small_logs_[i] = SignedLog(static_cast<float>(i));
    }
    const auto& all = layout().columns();
    for (size_t c = 0; c < all.size(); ++c) {
      if (!all[c].is_crossed()) continue;
      Crossing& crossing = crossings_.emplace_back(Crossing{.column = c});
      for (const std::string& name : all[c].of) {
        const auto operand = std::ranges::find(all, name, &ColumnSpec::name);
        crossing.of.push_back(static_cast<size_t>(operand - all.begin()));
      }
    }
  }

  size_t line_bytes() const override { return 3 * options_.cells; }

  LineResult Parse(std::string_view line, RowScratch& scratch, Block& block,
                   std::string& error) const override {
    if (!SplitCells(line, options_.delimiter, scratch)) {
      error = "a quoted cell that does not end on its line found, a closing quote expected";
      return LineResult::kBad;
    }
    if (scratch.cells.size() != options_.cells) {
      error = fmt::format("{} cells found, {} expected", scratch.cells.size(), options_.cells);
      return LineResult::kBad;
    }
    const size_t count = layout().columns().size();
    for (size_t c = 0; c < count; ++c) {
      if (layout().columns()[c].is_crossed()) continue;
      const size_t at = options_.cell_of_column[c];
      const std::string_view cell = at == kNoCell ? std::string_view() : scratch.cells[at];
      if (!PutCell(c, cell, scratch, block, error)) return LineResult::kBad;
    }
    for (const Crossing& crossing : crossings_) PutCrossed(crossing, block);
    return LineResult::kRow;
  }

 private:
  struct Crossing {
    size_t column = 0;
    std::vector<size_t> of;
  };

  // The key is the hash of the column's name and its operands' keys, one after the other: two
  // crossings in one table share no rows, and the order of operands counts.
  void PutCrossed(const Crossing& crossing, Block& block) const {
    fmt::memory_buffer text;
    fmt::format_to(std::back_inserter(text), "{}=", layout().columns()[crossing.column].name);
    for (const size_t c : crossing.of) {
      const Key key = block.KeyAt(c);
      text.append(std::string_view(reinterpret_cast<const char*>(&key), sizeof key));
    }
    block.PutKey(crossing.column, HashString({text.data(), text.size()}));
  }

  bool PutCell(size_t c, std::string_view cell, RowScratch& scratch, Block& block,
               std::string& error) const {
    const ColumnSpec& column = layout().columns()[c];
    switch (column.type) {
      case ColumnType::kFloat:
        return PutFloat(c, cell, block, error);
      case ColumnType::kString:
        return block.PutKey(c, StringKey(column, cell));
      case ColumnType::kId:
        return PutId(c, cell, block, error);
      case ColumnType::kIds:
      case ColumnType::kStrings:
        return PutList(c, cell, scratch, block, error);
    }
    return false;
  }

  // With transform `named`, equal texts or ids in two columns have different keys.
  template <class Cell>
  static Key NamedKey(const ColumnSpec& column, const Cell& cell) {
    fmt::memory_buffer text;
    fmt::format_to(std::back_inserter(text), "{}={}", column.name, cell);
    return HashString({text.data(), text.size()});
  }

  static Key StringKey(const ColumnSpec& column, std::string_view cell) {
    return column.transform.empty() ? HashString(cell) : NamedKey(column, cell);
  }

  // Sets the key of an id; returns false and an error if the cell holds none.
  static bool IdKey(const ColumnSpec& column, std::string_view cell, Key& key, std::string& error) {
    cell = Trimmed(cell);
    if (!ParseU64(cell, key)) {
      error = CellError(column.name, Quoted(cell), kIdExpected) + IdAdvice(column, cell);
      return false;
    }
    if (column.transform == "named") key = NamedKey(column, key);
    return true;
  }

  bool PutFloat(size_t c, std::string_view cell, Block& block, std::string& error) const {
    const ColumnSpec& column = layout().columns()[c];
    cell = Trimmed(cell);
    float value = column.fill;
    if (cell.empty() && column.role == ColumnRole::kFeature) {
      block.PutFloat(c, value);  // The fill is not transformed.
      return true;
    }
    if (cell.empty() && options_.labels_optional) {
      block.PutFloat(c, column.role == ColumnRole::kLabel ? kNoLabel : 1.0f);
      return true;
    }
    if (!ParseFloat(cell, value)) {
      error = CellError(column.name, Quoted(cell), "a finite number");
      return false;
    }
    if (!column.transform.empty()) {
      const bool small =
          value >= 0 && value < static_cast<float>(kSmallIntegers) && value == std::floor(value);
      value = small ? small_logs_[static_cast<size_t>(value)] : SignedLog(value);
    }
    block.PutFloat(c, value);
    return true;
  }

  bool PutId(size_t c, std::string_view cell, Block& block, std::string& error) const {
    const ColumnSpec& column = layout().columns()[c];
    if (column.transform == "bucket") return PutBucket(c, Trimmed(cell), block, error);
    Key key = 0;
    return IdKey(column, cell, key, error) && block.PutKey(c, key);
  }

  bool PutBucket(size_t c, std::string_view cell, Block& block, std::string& error) const {
    const ColumnSpec& column = layout().columns()[c];
    fmt::memory_buffer text;
    fmt::format_to(std::back_inserter(text), "{}=", column.name);
    int64_t value = 0;
    if (!cell.empty()) {
      if (!ParseI64(cell, value)) {
        error = CellError(column.name, Quoted(cell), "an integer of at most 64 bits");
        return false;
      }
      fmt::format_to(std::back_inserter(text), "{}", BucketOf(value));
    }
    return block.PutKey(c, HashString({text.data(), text.size()}));
  }

  bool PutList(size_t c, std::string_view cell, RowScratch& scratch, Block& block,
               std::string& error) const {
    const ColumnSpec& column = layout().columns()[c];
    scratch.keys.clear();
    for (bool more = !cell.empty(); more;) {
      const size_t end = column.separator.empty() ? cell.npos : cell.find(column.separator);
      std::string_view item = cell.substr(0, end);
      more = end != cell.npos;
      if (more) cell.remove_prefix(end + column.separator.size());
      Key key = 0;
      if (column.type == ColumnType::kStrings) {
        key = StringKey(column, item);
      } else if (!IdKey(column, item, key, error)) {
        return false;
      }
      scratch.keys.push_back(key);
    }
    if (block.PutKeys(c, scratch.keys, {})) return true;
    error = CellError(column.name, fmt::format("{} items", scratch.keys.size()),
                      fmt::format("{} items", column.length));
    return false;
  }

  const DelimitedOptions options_;
  std::vector<Crossing> crossings_;
  std::vector<float> small_logs_;  // SignedLog of small integers, which most cells are.
};

}  // namespace

std::unique_ptr<LineDecoder> MakeDelimitedDecoder(std::vector<ColumnSpec> columns,
                                                  DelimitedOptions options) {
  return std::make_unique<DelimitedDecoder>(std::move(columns), std::move(options));
}

Status CheckDelimitedColumns(const std::vector<ColumnSpec>& columns) {
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
  }
  return OkStatus();
}

std::vector<std::string> HeaderCells(std::string_view line, char delimiter) {
  RowScratch scratch;
  if (!SplitCells(line, delimiter, scratch)) return {};
  std::vector<std::string> names;
  for (const std::string_view cell : scratch.cells) names.emplace_back(Trimmed(cell));
  return names;
}

}  // namespace dt::worker
