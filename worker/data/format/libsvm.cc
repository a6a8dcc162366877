#include "worker/data/format/libsvm.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/base/check.h"
#include "worker/data/format/cell_values.h"
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

class LibsvmDecoder : public LineDecoder {
 public:
  LibsvmDecoder(std::vector<ColumnSpec> columns, LibsvmOptions options)
      : LineDecoder(RowLayout(std::move(columns))),
        options_(options),
        label_(ColumnWhere(layout().columns(), false)),
        ids_(ColumnWhere(layout().columns(), true)),
        hash_(ids_spec().hash) {}

  size_t line_bytes() const override { return 2 + 6 * std::max(1u, ids_spec().length); }

  LineResult Parse(std::string_view line, RowScratch& scratch, Block& block,
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
      scratch.keys.push_back(HashedKey(key, hash_));
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

  LineResult Misfit(RowScratch& scratch, bool weighted, std::string& error) const {
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
  const uint64_t hash_;  // See ColumnSpec.
};

}  // namespace

std::unique_ptr<LineDecoder> MakeLibsvmDecoder(std::vector<ColumnSpec> columns,
                                               LibsvmOptions options) {
  return std::make_unique<LibsvmDecoder>(std::move(columns), options);
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
  const LibsvmDecoder decoder(LibsvmColumns({.length = 0, .weighted = true}), options);
  RowScratch scratch;
  BlockResult result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    decoder.Decode(text.substr(0, end), scratch, result);
    if (result.block.rows() == 1) return {static_cast<uint32_t>(scratch.keys.size()), false};
    text.remove_prefix(end);
  }
  return {};
}

namespace {

// The format of files of libsvm or, with `fields`, of libffm.
class LibsvmFormat : public LineFormat {
 public:
  LibsvmFormat(FormatRequest request, bool fields)
      : request_(std::move(request)), fields_(fields), shape_(request_.shape) {}

  Status CheckColumns() const override {
    return named() ? CheckLibsvmColumns(request_.columns) : OkStatus();
  }
  std::vector<ColumnSpec> columns() const override;
  bool has_key_shape() const override { return true; }
  Result<LineInput> LinesOf(std::string_view text, const std::string& name) override;
  void Widen(KeyShape shape) override {
    shape_ = shape;
    decoder_ = nullptr;
  }

 private:
  bool named() const { return !request_.columns.empty(); }

  const FormatRequest request_;
  const bool fields_;
  std::optional<KeyShape> shape_;               // The shape in use: given or found.
  std::shared_ptr<const LineDecoder> decoder_;  // The decoder of all inputs.
};

std::vector<ColumnSpec> LibsvmFormat::columns() const {
  if (!named()) return LibsvmColumns(shape_.value_or(KeyShape{}));
  std::vector<ColumnSpec> columns = request_.columns;
  for (ColumnSpec& column : columns) {
    if (column.is_keys() && shape_.has_value()) column.weighted = shape_->weighted;
  }
  return columns;
}

// The first input decides the shape, if it was not given.
Result<LineInput> LibsvmFormat::LinesOf(std::string_view text, const std::string& /*name*/) {
  if (decoder_ != nullptr) return LineInput{decoder_};
  LibsvmOptions options{.fields = fields_, .labels_optional = request_.labels_optional};
  if (!shape_.has_value() && !named()) {
    shape_ = ProbeLibsvm(text, options);
    if (shape_->length > kFixedLengthMax) shape_->length = 0;
  }
  options.open_weights = !request_.shape.has_value();
  options.open_length = options.open_weights && !named();
  decoder_ = MakeLibsvmDecoder(columns(), options);
  return LineInput{decoder_};
}

}  // namespace

std::unique_ptr<FileFormat> MakeLibsvmFormat(FormatRequest request) {
  return std::make_unique<LibsvmFormat>(std::move(request), false);
}

std::unique_ptr<FileFormat> MakeLibffmFormat(FormatRequest request) {
  return std::make_unique<LibsvmFormat>(std::move(request), true);
}

}  // namespace dt::worker
