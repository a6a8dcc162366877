#include "common/rows/rows_header.h"

#include <charconv>

#include "common/base/text.h"

namespace dt {
namespace {

constexpr std::string_view kFirstLine = "dovetail rows 2";

Status Damaged(std::string_view line) {
  return DataLoss("the header is damaged at \"{}\"", line.substr(0, 80));
}

template <class T>
bool Parse(std::string_view text, int base, T& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && stop == end;
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

Status ParseLine(std::string_view line, RowsHeader& header) {
  if (line.starts_with("table ")) return ParseTable(line, header);
  const std::vector<std::string_view> words = SplitText(line, ' ');
  bool good = words.size() == 2;
  if (words[0] == "step") {
    good = good && Parse(words[1], 10, header.step);
  } else if (words[0] == "shards") {
    good = good && Parse(words[1], 10, header.shards);
  } else if (words[0] == "holds") {
    good = true;
    for (size_t i = 1; i < words.size() && good; ++i) {
      uint32_t shard = 0;
      good = Parse(words[i], 10, shard);
      header.holds.emplace_back(shard);
    }
  } else {
    good = false;
  }
  return good ? OkStatus() : Damaged(line);
}

}  // namespace

std::string HeaderText(const RowsHeader& header) {
  std::string text =
      fmt::format("{}\nstep {}\nshards {}\nholds", kFirstLine, header.step, header.shards);
  for (const ShardId shard : header.holds) text += fmt::format(" {}", shard.value());
  for (const RowsHeader::Table& t : header.tables) {
    text += fmt::format("\ntable {} {} {} {} {}", HexOf(t.id.value()), t.dim, NameOf(t.dtype),
                        t.state, t.name);
  }
  return text;
}

Result<RowsHeader> ParseRowsHeader(std::string_view text) {
  const std::vector<std::string_view> lines = SplitText(text, '\n');
  if (lines.empty() || lines[0] != kFirstLine) {
    return Damaged(lines.empty() ? std::string_view() : lines[0]);
  }
  RowsHeader header;
  for (size_t i = 1; i < lines.size(); ++i) DT_TRY_STATUS(ParseLine(lines[i], header));
  if (HeaderText(header) != text) return Damaged(lines[0]);
  return header;
}

}  // namespace dt
