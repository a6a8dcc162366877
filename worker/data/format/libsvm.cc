#include "worker/data/format/libsvm.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/base/check.h"
#include "worker/data/format/number.h"

namespace dt::worker {
namespace {

constexpr std::string_view kU64Expected = "an id from 0 to 18446744073709551615";

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

size_t ColumnWhere(const std::vector<ColumnSpec>& columns, bool keys) {
  const auto at = std::find_if(columns.begin(), columns.end(),
                               [&](const ColumnSpec& c) { return c.is_keys() == keys; });
  DT_CHECK(at != columns.end());
  return static_cast<size_t>(at - columns.begin());
}

// Walks the blank-separated words of a line.
class Words {
 public:
  explicit Words(std::string_view line) : at_(line.data()), end_(at_ + line.size()) {}
  // Empty at the end of the line or at a comment.
  std::string_view Next() {
    while (at_ < end_ && IsBlank(*at_)) ++at_;
    if (at_ < end_ && *at_ == '#') at_ = end_;
    const char* const start = at_;
    while (at_ < end_ && !IsBlank(*at_)) ++at_;
    return {start, static_cast<size_t>(at_ - start)};
  }

 private:
  const char* at_;
  const char* end_;
};

class LibsvmFormat : public RowFormat {
 public:
  LibsvmFormat(std::vector<ColumnSpec> columns, LibsvmOptions options)
      : RowFormat(RowLayout(std::move(columns))),
        options_(options),
        label_(ColumnWhere(layout().columns(), false)),
        ids_(ColumnWhere(layout().columns(), true)) {}

  size_t line_bytes() const override { return 2 + 6 * std::max(1u, ids_spec().length); }

  LineResult Parse(std::string_view line, LineScratch& scratch, Block& block,
                   std::string& error) const override {
    Words words(line);
    std::string_view word = words.Next();
    if (word.empty()) return LineResult::kNothing;
    float label = kNoLabel;
    if (!options_.labels_optional || word.find(':') == word.npos) {
      if (!ParseFloat(word, label)) return BadLabel(word, error);
      word = words.Next();
    }
    block.PutFloat(label_, label);
    scratch.keys.clear();
    scratch.weights.clear();
    bool weighted = false;
    for (; !word.empty(); word = words.Next()) {
      Key key = 0;
      float value = 1;
      if (!ParsePair(word, key, value)) return BadPair(word, error);
      weighted |= value != 1;
      scratch.keys.push_back(key);
      scratch.weights.push_back(value);
    }
    const bool too_wide = weighted && !ids_spec().weighted;
    if (!too_wide && block.PutKeys(ids_, scratch.keys, scratch.weights)) return LineResult::kRow;
    return Misfit(scratch, weighted, error);
  }

 private:
  const ColumnSpec& ids_spec() const { return layout().columns()[ids_]; }

  // This is the hot loop, so the common ":1" is parsed without a call.
  bool ParsePair(std::string_view word, Key& key, float& value) const {
    const char* at = word.data();
    const char* const end = at + word.size();
    uint64_t number = 0;
    if (options_.fields) {
      const auto [stop, code] = std::from_chars(at, end, number);
      if (code != std::errc() || stop == end || *stop != ':') return false;
      at = stop + 1;
    }
    const auto [stop, code] = std::from_chars(at, end, number);
    if (code != std::errc()) return false;
    key = number;
    if (stop == end) return !options_.fields;
    if (*stop != ':') return false;
    if (end - stop == 2 && stop[1] == '1') return true;
    return ParseFloat({stop + 1, static_cast<size_t>(end - stop - 1)}, value);
  }

  LineResult BadLabel(std::string_view text, std::string& error) const {
    error = CellError(layout().columns()[label_].name, Quoted(text), "a number");
    return LineResult::kBad;
  }

  LineResult BadPair(std::string_view word, std::string& error) const {
    const std::string_view form = options_.fields ? "field:id:value" : "id:value";
    error = CellError(ids_spec().name, Quoted(word),
                      fmt::format("{} with {} and a finite value", form, kU64Expected));
    return LineResult::kBad;
  }

  LineResult Misfit(LineScratch& scratch, bool weighted, std::string& error) const {
    const ColumnSpec& ids = ids_spec();
    const size_t count = scratch.keys.size();
    const bool fits = ids.is_ragged() || count == ids.length;
    const bool weighs = !weighted || ids.weighted;
    if ((fits || options_.open_length) && (weighs || options_.open_weights)) {
      scratch.wider = {fits ? ids.length : 0, weighted || ids.weighted};
      return LineResult::kWiden;
    }
    if (!fits && !options_.open_length) {
      error = CellError(ids.name, fmt::format("{} ids", count), fmt::format("{} ids", ids.length));
    } else {
      error = CellError(ids.name, "a value other than 1", "1, as in the training data,");
    }
    return LineResult::kBad;
  }

  const LibsvmOptions options_;
  const size_t label_;
  const size_t ids_;
};

}  // namespace

std::unique_ptr<RowFormat> MakeLibsvmFormat(std::vector<ColumnSpec> columns,
                                            LibsvmOptions options) {
  return std::make_unique<LibsvmFormat>(std::move(columns), options);
}

Status CheckLibsvmColumns(const std::vector<ColumnSpec>& columns) {
  const bool good = columns.size() == 2 && columns[0].is_keys() != columns[1].is_keys() &&
                    std::all_of(columns.begin(), columns.end(), [](const ColumnSpec& c) {
                      return c.is_keys() ? c.type == ColumnType::kId || c.type == ColumnType::kIds
                                         : c.role == ColumnRole::kLabel;
                    });
  if (good) return OkStatus();
  return WithHint(Invalid("data.columns: {} columns found; libsvm and libffm hold one float column "
                          "with role label and one column of type ids",
                          columns.size()),
                  "leave data.columns out for `label` and `features`");
}

std::vector<ColumnSpec> LibsvmColumns(KeyShape shape) {
  ColumnSpec label;
  label.name = "label";
  label.role = ColumnRole::kLabel;
  ColumnSpec features;
  features.name = "features";
  features.type = ColumnType::kIds;
  features.length = shape.length;
  features.weighted = shape.weighted;
  return {label, features};
}

KeyShape ProbeLibsvm(std::string_view text, LibsvmOptions options) {
  const LibsvmFormat format(LibsvmColumns({.length = 0, .weighted = true}), options);
  LineScratch scratch;
  BlockResult result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    ParseBlock(format, text.substr(0, end), scratch, result);
    if (result.block.rows() == 1) return {static_cast<uint32_t>(scratch.keys.size()), false};
    text.remove_prefix(end);
  }
  return {};
}

}  // namespace dt::worker
