#include "worker/data/kept_columns.h"

#include <algorithm>

#include "common/base/text.h"

namespace dt::worker {
namespace {

void AppendCell(std::string_view cell, std::string& line) {
  if (cell.find_first_of(",\"") == std::string_view::npos) {
    line += cell;
  } else {
    line += '"';
    for (const char c : cell) line.append(c == '"' ? 2 : 1, c);
    line += '"';
  }
  line += ',';
}

}  // namespace

Result<std::unique_ptr<KeptColumns>> KeptColumns::Open(const DataConfig& config) {
  DT_TRY(SplitSource source, SplitSource::Make(config, Split::kTest, std::nullopt));
  auto kept = std::make_unique<KeptColumns>(std::move(source), config.kept_columns);
  // Opens every file, the first one last: a name that a file lacks is reported before any
  // computation.
  for (kept->input_ = kept->source_.inputs(); kept->input_-- > 0;) {
    DT_TRY_STATUS(kept->OpenInput());
    if (kept->input_ == 0) break;
  }
  return kept;
}

Status KeptColumns::OpenInput() {
  DT_TRY(auto bytes, source_.Open(input_));
  reader_ = std::make_unique<BlockReader>(std::move(bytes), source_.name(input_));
  DT_TRY_STATUS(reader_->Next(text_));
  DT_TRY(format_, source_.FormatFor(input_, text_));
  rest_ = text_;
  if (format_.has_header) TakeLine(rest_);
  cells_.clear();
  for (const std::string& name : names_) {
    const auto at = std::ranges::find(format_.cell_names, name);
    if (at == format_.cell_names.end()) {
      return Invalid("--keep: {} has no column \"{}\"{}", source_.name(input_), name,
                     format_.cell_names.empty() ? "; its format gives cells no names"
                                                : DidYouMean(name, format_.cell_names));
    }
    cells_.push_back(static_cast<size_t>(at - format_.cell_names.begin()));
  }
  return OkStatus();
}

Status KeptColumns::AppendNext(std::string& line) {
  std::string error;
  for (;;) {
    if (rest_.empty()) {
      DT_TRY_STATUS(reader_->Next(text_));
      rest_ = text_;
    }
    if (rest_.empty()) {
      if (++input_ == source_.inputs()) return DataLoss("the data has changed while it was read");
      DT_TRY_STATUS(OpenInput());
      continue;
    }
    const std::string_view text = TakeLine(rest_);
    if (text.empty()) continue;
    block_.Clear(format_.rows->layout(), 1);
    block_.Start();
    if (format_.rows->Parse(text, scratch_, block_, error) == LineResult::kRow) break;
  }
  for (const size_t cell : cells_) AppendCell(scratch_.cells[cell], line);
  return OkStatus();
}

}  // namespace dt::worker
