// Criteo's TSV, whose columns are fixed, except that a request may fill empty cells otherwise.
// Files have no header.
#include <algorithm>
#include <numeric>

#include "worker/data/format/delimited.h"

namespace dt::worker {
namespace {

// If not `labelled`, lines begin with the cell after the label.
std::shared_ptr<const LineDecoder> MakeDecoder(std::vector<ColumnSpec> columns, bool labelled) {
  DelimitedOptions options{
      .delimiter = '\t', .cells = columns.size(), .labels_optional = !labelled};
  options.cell_of_column.resize(columns.size());
  const auto begin = options.cell_of_column.begin();
  std::iota(begin, options.cell_of_column.end(), size_t{0});
  if (!labelled) {
    options.cells -= 1;
    *begin = kNoCell;
    std::iota(begin + 1, options.cell_of_column.end(), size_t{0});
  }
  return MakeDelimitedDecoder(std::move(columns), std::move(options));
}

class CriteoFormat : public LineFormat {
 public:
  explicit CriteoFormat(const FormatRequest& request)
      : labels_optional_(request.labels_optional),
        columns_(request.columns.empty() ? OwnColumnsOf(InfoOf(DataFormat::kCriteo))
                                         : request.columns) {}

  std::vector<ColumnSpec> columns() const override { return columns_; }

  // The first input decides whether the lines of all inputs begin with a label.
  Result<LineInput> LinesOf(std::string_view text, const std::string& /*name*/) override {
    const bool labelled = HasLabel(text);
    if (decoder_ == nullptr) decoder_ = MakeDecoder(columns_, labelled);
    LineInput input{decoder_};
    for (const ColumnSpec& column : columns_) input.cell_names.push_back(column.name);
    if (!labelled) input.cell_names.erase(input.cell_names.begin());
    return input;
  }

 private:
  bool HasLabel(std::string_view text) const {
    const auto tabs = static_cast<size_t>(std::ranges::count(FirstLine(text), '\t'));
    return !labels_optional_ || tabs + 1 == columns_.size();
  }

  const bool labels_optional_;
  const std::vector<ColumnSpec> columns_;
  std::shared_ptr<const LineDecoder> decoder_;  // The decoder of all inputs.
};

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): the same for all formats.
std::unique_ptr<FileFormat> MakeCriteoFormat(FormatRequest request) {
  return std::make_unique<CriteoFormat>(request);
}

}  // namespace dt::worker
