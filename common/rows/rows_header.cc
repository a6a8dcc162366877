#include "common/rows/rows_header.h"

#include <algorithm>
#include <charconv>

#include "common/base/text.h"

namespace dt {
namespace {

constexpr std::string_view kWithPositions = "dovetail rows 3";
constexpr std::string_view kWithoutPositions = "dovetail rows 2";

Status Damaged(std::string_view line) {
  return DataLoss("the header is damaged at \"{}\"", line.substr(0, 80));
}

template <class T>
bool Parse(std::string_view text, int base, T& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && stop == end;
}

// Calls `add` with each number after the first word.
template <class T, class Add>
bool ParseList(const std::vector<std::string_view>& words, const Add& add) {
  for (size_t i = 1; i < words.size(); ++i) {
    T value = 0;
    if (!Parse(words[i], 10, value)) return false;
    add(value);
  }
  return true;
}

bool ParseDtype(std::string_view text, FloatFormat& dtype) {
  dtype = text == "bf16" ? FloatFormat::kBf16 : FloatFormat::kFp32;
  return text == NameOf(dtype);
}

Status ParseTable(std::string_view line, RowsHeader& header) {
  // The name comes last and may contain spaces.
  RowsHeader::Table table;
  uint64_t id = 0;
  const std::vector<std::string_view> words = SplitText(line, ' ');
  if (words.size() < 6 || !Parse(words[1], 16, id) || !Parse(words[2], 10, table.dim) ||
      !ParseDtype(words[3], table.dtype) || !Parse(words[4], 10, table.state)) {
    return Damaged(line);
  }
  table.id = TableId(id);
  table.name = line.substr(static_cast<size_t>(words[5].data() - line.data()));
  header.tables.push_back(std::move(table));
  return OkStatus();
}

std::string MissedText(TableId id, const RowsHeader::Missed& missed) {
  const OptimizerSpec& spec = missed.optimizer;
  std::string text =
      fmt::format("missed {} {} {}", HexOf(id.value()), missed.now, NameOf(spec.kind));
  for (const OptimizerNumber& number : kOptimizerNumbers) {
    text += fmt::format(" {}={}", number.name, spec.*number.value);
  }
  return text + fmt::format(" l2={}", spec.l2);
}

// Sets a number of the optimizer from "name=value".
bool ParseNumber(std::string_view word, OptimizerSpec& spec) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string_view name = word.substr(0, equals);
  const auto number = std::ranges::find(kOptimizerNumbers, name, &OptimizerNumber::name);
  if (name != "l2" && number == std::end(kOptimizerNumbers)) return false;
  float& value = name == "l2" ? spec.l2 : spec.*number->value;
  const std::string_view digits = word.substr(std::min(equals + 1, word.size()));
  const char* const end = digits.data() + digits.size();
  return std::from_chars(digits.data(), end, value).ptr == end;
}

Status ParseMissed(std::string_view line, RowsHeader& header) {
  const std::vector<std::string_view> words = SplitText(line, ' ');
  RowsHeader::Missed missed;
  uint64_t id = 0;
  const OptimizerInfo* const optimizer = words.size() < 4 ? nullptr : FindOptimizer(words[3]);
  if (optimizer == nullptr || !optimizer->has_dense_scope || !Parse(words[1], 16, id) ||
      !Parse(words[2], 10, missed.now)) {
    return Damaged(line);
  }
  missed.optimizer.kind = optimizer->kind;
  missed.optimizer.scope = UpdateScope::kDense;
  const auto table = std::ranges::find(header.tables, TableId(id), &RowsHeader::Table::id);
  const bool good = std::ranges::all_of(words.begin() + 4, words.end(), [&](std::string_view word) {
    return ParseNumber(word, missed.optimizer);
  });
  if (!good || table == header.tables.end()) return Damaged(line);
  const uint64_t state = uint64_t{optimizer->value_states} * table->dim + optimizer->row_states + 1;
  if (table->state != state || table->dim > kRowDimMax) return Damaged(line);
  table->missed = missed;
  return OkStatus();
}

Status ParseLine(std::string_view line, RowsHeader& header) {
  if (line.starts_with("table ")) return ParseTable(line, header);
  if (line.starts_with("missed ")) return ParseMissed(line, header);
  const std::vector<std::string_view> words = SplitText(line, ' ');
  bool good = words.size() == 2;
  if (words[0] == "step") {
    good = good && Parse(words[1], 10, header.step);
  } else if (words[0] == "shards") {
    good = good && Parse(words[1], 10, header.shards);
  } else if (words[0] == "holds") {
    good = ParseList<uint32_t>(words, [&](uint32_t shard) { header.holds.emplace_back(shard); });
  } else if (words[0] == "positions") {
    good = ParseList<uint64_t>(words, [&](uint64_t p) { header.positions.push_back(p); });
    good = good && header.positions.size() == header.holds.size();
  } else {
    good = false;
  }
  return good ? OkStatus() : Damaged(line);
}

}  // namespace

std::string HeaderText(const RowsHeader& header) {
  std::string text = fmt::format("{}\nstep {}\nshards {}\nholds",
                                 header.positions.empty() ? kWithoutPositions : kWithPositions,
                                 header.step, header.shards);
  for (const ShardId shard : header.holds) text += fmt::format(" {}", shard.value());
  if (!header.positions.empty()) text += "\npositions";
  for (const uint64_t position : header.positions) text += fmt::format(" {}", position);
  for (const RowsHeader::Table& t : header.tables) {
    text += fmt::format("\ntable {} {} {} {} {}", HexOf(t.id.value()), t.dim, NameOf(t.dtype),
                        t.state, t.name);
  }
  for (const RowsHeader::Table& t : header.tables) {
    if (t.missed.has_value()) text += '\n' + MissedText(t.id, *t.missed);
  }
  return text;
}

Result<RowsHeader> ParseRowsHeader(std::string_view text) {
  const std::vector<std::string_view> lines = SplitText(text, '\n');
  if (lines.empty()) return Damaged("");
  RowsHeader header;
  for (size_t i = 1; i < lines.size(); ++i) DT_TRY_STATUS(ParseLine(lines[i], header));
  if (HeaderText(header) != text) return Damaged(lines[0]);
  return header;
}

}  // namespace dt
