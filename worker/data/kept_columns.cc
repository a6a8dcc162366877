#include "worker/data/kept_columns.h"

#include <algorithm>

#include "common/base/text.h"

namespace dt::worker {
namespace {

// All files have been read once already, and none was empty then.
constexpr std::string_view kChanged = "the data has changed while it was read";

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
  for (kept->input_ = kept->source_.inputs().size(); kept->input_-- > 0;) {
    DT_TRY_STATUS(kept->OpenInput());
    if (kept->input_ == 0) break;
  }
  return kept;
}

Status KeptColumns::OpenInput() {
  DT_TRY(reader_, source_.Open(input_));
  DT_TRY_STATUS(reader_->Next(text_));
  rest_ = text_;
  lines_ = reader_->lines();
  if (lines_ == nullptr && text_.empty()) return DataLoss(kChanged);
  if (lines_ == nullptr) {
    return Invalid("--keep: {} holds no lines of text whose cells can be copied",
                   source_.inputs().name(input_));
  }
  const std::vector<std::string>& cell_names = lines_->cell_names;
  cells_.clear();
  for (const std::string& name : names_) {
    const auto at = std::ranges::find(cell_names, name);
    if (at == cell_names.end()) {
      return Invalid(
          "--keep: {} has no column \"{}\"{}", source_.inputs().name(input_), name,
          cell_names.empty() ? "; its format gives cells no names" : DidYouMean(name, cell_names));
    }
    cells_.push_back(static_cast<size_t>(at - cell_names.begin()));
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
      if (++input_ == source_.inputs().size()) return DataLoss(kChanged);
      DT_TRY_STATUS(OpenInput());
      continue;
    }
    const std::string_view text = TakeLine(rest_);
    if (text.empty()) continue;
    block_.Clear(lines_->decoder->layout(), 1);
    block_.Start();
    if (lines_->decoder->Parse(text, scratch_, block_, error) == LineResult::kRow) break;
  }
  for (const size_t cell : cells_) AppendCell(scratch_.cells[cell], line);
  return OkStatus();
}

}  // namespace dt::worker
