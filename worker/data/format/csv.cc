// CSV with a header of names. A file without a header has the cells of the first training file.
#include <algorithm>

#include "common/base/text.h"
#include "worker/data/format/cell_values.h"
#include "worker/data/format/delimited.h"
#include "worker/data/input/block_reader.h"

namespace dt::worker {
namespace {

// Whether a first line that lacks a name is a header all the same: half of its cells are known
// names.
bool IsHeader(const std::vector<std::string>& line, const std::vector<std::string>& names) {
  const auto known = std::ranges::count_if(
      line, [&](const std::string& cell) { return std::ranges::count(names, cell) > 0; });
  return known > 0 && 2 * static_cast<size_t>(known) >= line.size();
}

size_t CellNamed(const std::vector<std::string>& header, std::string_view name) {
  const auto at = std::ranges::find(header, name);
  return at == header.end() ? kNoCell : static_cast<size_t>(at - header.begin());
}

class CsvFormat : public LineFormat {
 public:
  explicit CsvFormat(FormatRequest request) : request_(std::move(request)) {}

  Status CheckColumns() const override { return CheckListedColumns(request_.columns); }
  std::vector<ColumnSpec> columns() const override { return request_.columns; }
  Result<LineInput> LinesOf(std::string_view text, const std::string& name) override;

 private:
  // The first name that the header must have and lacks; null: none.
  const std::string* Missing(const std::vector<std::string>& header) const;
  std::shared_ptr<const LineDecoder> DecoderOf(const std::vector<std::string>& header) const;
  Result<std::vector<std::string>> TrainHeader() const;

  const FormatRequest request_;
  std::vector<std::string> header_;  // The header of the first input that had one.
};

const std::string* CsvFormat::Missing(const std::vector<std::string>& header) const {
  for (const ColumnSpec& column : request_.columns) {
    if (column.is_crossed()) continue;
    if (request_.labels_optional && column.role != ColumnRole::kFeature) continue;
    if (CellNamed(header, column.name_in_file()) == kNoCell) return &column.name_in_file();
    if (!column.weights.empty() && CellNamed(header, column.weights) == kNoCell) {
      return &column.weights;
    }
  }
  return nullptr;
}

Result<LineInput> CsvFormat::LinesOf(std::string_view text, const std::string& name) {
  const std::vector<std::string> first = HeaderCells(FirstLine(text), request_.delimiter);
  const std::string* const missing = Missing(first);
  if (missing == nullptr) {
    if (header_.empty()) header_ = first;
    return LineInput{DecoderOf(first), true, first};
  }
  if (header_.empty()) {
    DT_TRY(header_, TrainHeader());
  }
  if (!header_.empty() && IsHeader(first, header_)) {
    return WithHint(
        Malformed("{}:1: column \"{}\": no such name found in the header, all of data.columns "
                  "expected{}",
                  name, *missing, DidYouMean(*missing, first)),
        "a file without a header has the cells of the first training file");
  }
  if (header_.empty()) {
    return WithHint(Malformed("{}:1: column \"{}\": no such name found in the first line, a header "
                              "with all of data.columns expected{}",
                              name, *missing, DidYouMean(*missing, first)),
                    "the first training file must start with the names of its columns");
  }
  return LineInput{DecoderOf(header_), false, header_};
}

// Empty if the first training file has no header or is absent.
Result<std::vector<std::string>> CsvFormat::TrainHeader() const {
  if (request_.open_training == nullptr) return std::vector<std::string>();
  Result<NamedSource> source = request_.open_training();
  if (!source.ok()) return std::vector<std::string>();
  BlockReader reader(std::move(source->bytes), source->name);
  std::string text;
  DT_TRY_STATUS(reader.Next(text));
  std::vector<std::string> header = HeaderCells(FirstLine(text), request_.delimiter);
  if (Missing(header) != nullptr) header.clear();
  return header;
}

std::shared_ptr<const LineDecoder> CsvFormat::DecoderOf(
    const std::vector<std::string>& header) const {
  DelimitedOptions options{.delimiter = request_.delimiter,
                           .cells = header.size(),
                           .labels_optional = request_.labels_optional};
  for (const ColumnSpec& column : request_.columns) {
    options.cell_of_column.push_back(CellNamed(header, column.name_in_file()));
    options.weights_of_column.push_back(CellNamed(header, column.weights));
  }
  return MakeDelimitedDecoder(request_.columns, std::move(options));
}

}  // namespace

std::unique_ptr<FileFormat> MakeCsvFormat(FormatRequest request) {
  return std::make_unique<CsvFormat>(std::move(request));
}

}  // namespace dt::worker
