#include "worker/data/format/delimited.h"

#include <algorithm>

#include <fmt/format.h>

#include "worker/data/format/cell_values.h"
#include "worker/data/format/number.h"

namespace dt::worker {
namespace {

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
      : LineDecoder(RowLayout(std::move(columns))),
        options_(std::move(options)),
        crossings_(layout()),
        converters_(ConvertersOf(layout(), logs_)) {}

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
    if (!crossings_.empty()) crossings_.Put(block.OpenRecord());
    return LineResult::kRow;
  }

 private:
  bool PutCell(size_t c, std::string_view cell, RowScratch& scratch, Block& block,
               std::string& error) const {
    const ColumnSpec& column = layout().columns()[c];
    switch (column.type) {
      case ColumnType::kFloat:
        return column.is_vector() ? PutVector(c, cell, scratch, block, error)
                                  : PutFloat(c, cell, block, error);
      case ColumnType::kString:
        return block.PutKey(c, converters_[c].OfText(cell));
      case ColumnType::kId:
        return PutId(c, Trimmed(cell), block, error);
      case ColumnType::kIds:
      case ColumnType::kStrings:
        return PutList(c, cell, scratch, block, error);
    }
    return false;
  }

  // Sets the key of an id; returns false and an error if the cell holds none.
  bool ParseId(size_t c, std::string_view cell, Key& key, std::string& error) const {
    cell = Trimmed(cell);
    if (!ParseU64(cell, key)) {
      const ColumnSpec& column = layout().columns()[c];
      error = CellError(column.name, Quoted(cell), kIdExpected) + IdAdvice(column, cell);
      return false;
    }
    key = converters_[c].OfId(key);
    return true;
  }

  // Sets the number of a cell, or of a part of it; returns false and an error if there is none.
  bool ParseNumber(size_t c, std::string_view cell, float& value, std::string& error) const {
    const ColumnSpec& column = layout().columns()[c];
    cell = Trimmed(cell);
    value = column.fill;
    if (cell.empty() && column.role == ColumnRole::kFeature) return true;  // Not transformed.
    if (cell.empty() && options_.labels_optional) {
      value = column.role == ColumnRole::kLabel ? kNoLabel : 1.0f;
      return true;
    }
    if (!ParseFloat(cell, value)) return WrongCell(column, cell, "a finite number", error);
    value = converters_[c].Number(value);
    return true;
  }

  static bool WrongCell(const ColumnSpec& column, std::string_view cell, std::string_view expected,
                        std::string& error) {
    error = CellError(column.name, Quoted(cell), expected);
    return false;
  }

  bool PutFloat(size_t c, std::string_view cell, Block& block, std::string& error) const {
    float value = 0;
    if (!ParseNumber(c, cell, value, error)) return false;
    block.PutFloat(c, value);
    return true;
  }

  // An empty cell is a vector of `fill`.
  bool PutVector(size_t c, std::string_view cell, RowScratch& scratch, Block& block,
                 std::string& error) const {
    const ColumnSpec& column = layout().columns()[c];
    scratch.weights.assign(cell.empty() ? column.length : 0, column.fill);
    for (bool more = !cell.empty(); more;) {
      float& value = scratch.weights.emplace_back();
      if (!ParseNumber(c, TakeItem(column, cell, more), value, error)) return false;
    }
    if (block.PutFloatsAt(block.OpenRecord(), c, scratch.weights)) return true;
    return WrongLength(column, scratch.weights.size(), error);
  }

  bool PutId(size_t c, std::string_view cell, Block& block, std::string& error) const {
    Key key = 0;
    const CellConverter::Kind kind = converters_[c].kind();
    const bool parsed = kind == CellConverter::Kind::kId ? ParseId(c, cell, key, error)
                                                         : ParseKeyOf(kind, c, cell, key, error);
    return parsed && block.PutKey(c, key);
  }

  // The key of a number or a time; empty buckets and bins have one.
  bool ParseKeyOf(CellConverter::Kind kind, size_t c, std::string_view cell, Key& key,
                  std::string& error) const {
    const ColumnSpec& column = layout().columns()[c];
    const CellConverter& converter = converters_[c];
    int64_t integer = 0;
    float number = 0;
    switch (kind) {
      case CellConverter::Kind::kTime:
        if (!ParseTime(cell, integer)) return WrongCell(column, cell, kTimeExpected, error);
        key = converter.OfTime(integer);
        return true;
      case CellConverter::Kind::kBin:
        if (!cell.empty() && !ParseFloat(cell, number)) {
          return WrongCell(column, cell, "a finite number", error);
        }
        key = converter.OfBin(cell.empty() ? std::nullopt : std::optional(number));
        return true;
      default:
        if (!cell.empty() && !ParseI64(cell, integer)) {
          return WrongCell(column, cell, "an integer of at most 64 bits", error);
        }
        key = converter.OfBucket(cell.empty() ? std::nullopt : std::optional(integer));
        return true;
    }
  }

  bool PutList(size_t c, std::string_view cell, RowScratch& scratch, Block& block,
               std::string& error) const {
    const ColumnSpec& column = layout().columns()[c];
    scratch.keys.clear();
    for (bool more = !cell.empty(); more;) {
      const std::string_view item = TakeItem(column, cell, more);
      Key key = 0;
      if (column.type == ColumnType::kStrings) {
        key = converters_[c].OfText(item);
      } else if (!ParseId(c, item, key, error)) {
        return false;
      }
      scratch.keys.push_back(key);
    }
    scratch.weights.clear();
    if (column.weighted && !ParseWeights(c, scratch, error)) return false;
    return block.PutKeys(c, scratch.keys, scratch.weights) ||
           WrongLength(column, scratch.keys.size(), error);
  }

  // Fills scratch.weights with as many numbers as there are keys.
  bool ParseWeights(size_t c, RowScratch& scratch, std::string& error) const {
    const ColumnSpec& column = layout().columns()[c];
    std::string_view cell = scratch.cells[options_.weights_of_column[c]];
    for (bool more = !cell.empty(); more;) {
      const std::string_view item = Trimmed(TakeItem(column, cell, more));
      float& weight = scratch.weights.emplace_back();
      if (ParseFloat(item, weight)) continue;
      error = CellError(column.weights, Quoted(item), "a finite number");
      return false;
    }
    if (scratch.weights.size() == scratch.keys.size()) return true;
    error = WeightsError(column, scratch.weights.size(), scratch.keys.size());
    return false;
  }

  // Takes the text up to the next separator from `cell`; `more` tells whether there was one.
  static std::string_view TakeItem(const ColumnSpec& column, std::string_view& cell, bool& more) {
    const size_t end = column.separator.empty() ? cell.npos : cell.find(column.separator);
    const std::string_view item = cell.substr(0, end);
    more = end != cell.npos;
    if (more) cell.remove_prefix(end + column.separator.size());
    return item;
  }

  static bool WrongLength(const ColumnSpec& column, size_t found, std::string& error) {
    error = CellError(column.name, fmt::format("{} items", found),
                      fmt::format("{} items", column.length));
    return false;
  }

  const DelimitedOptions options_;
  const Crossings crossings_;
  const SignedLogs logs_;
  const std::vector<CellConverter> converters_;  // By column.
};

}  // namespace

std::unique_ptr<LineDecoder> MakeDelimitedDecoder(std::vector<ColumnSpec> columns,
                                                  DelimitedOptions options) {
  return std::make_unique<DelimitedDecoder>(std::move(columns), std::move(options));
}

std::vector<std::string> HeaderCells(std::string_view line, char delimiter) {
  RowScratch scratch;
  if (!SplitCells(line, delimiter, scratch)) return {};
  std::vector<std::string> names;
  for (const std::string_view cell : scratch.cells) names.emplace_back(Trimmed(cell));
  return names;
}

}  // namespace dt::worker
