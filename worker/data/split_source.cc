#include "worker/data/split_source.h"

#include <algorithm>
#include <cstring>
#include <errno.h>
#include <filesystem>
#include <sys/stat.h>

#include "common/base/text.h"
#include "common/base/written_paths.h"
#include "worker/data/cache_meta.h"
#include "worker/data/format/delimited.h"
#include "worker/data/format/libsvm.h"
#include "worker/data/format/number.h"
#include "worker/data/input/block_reader.h"

namespace dt::worker {
namespace {

constexpr uint32_t kFixedLengthMax = 1 << 16;  // Longer lists are stored as ragged.

bool IsKeyed(DataFormat format) {
  return format == DataFormat::kLibsvm || format == DataFormat::kLibffm;
}

std::string_view FirstLine(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// Whether a first line that lacks a name is a header all the same: half of its cells are known
// names.
bool IsHeader(const std::vector<std::string>& line, const std::vector<std::string>& names) {
  const auto known = std::ranges::count_if(
      line, [&](const std::string& cell) { return std::ranges::count(names, cell) > 0; });
  return known > 0 && 2 * static_cast<size_t>(known) >= line.size();
}

}  // namespace

const std::vector<std::string>& FilesOf(const DataConfig& config, Split split) {
  if (split == Split::kTrain) return config.train;
  return split == Split::kValid ? config.valid : config.test;
}

std::string_view NameOf(Split split) {
  if (split == Split::kTrain) return "train";
  return split == Split::kValid ? "valid" : "test";
}

Result<SplitSource> SplitSource::Make(const DataConfig& config, Split split,
                                      std::optional<KeyShape> shape) {
  SplitSource source;
  source.config_ = config;
  source.given_shape_ = source.shape_ = shape;
  // The command prints the training data; the other splits are files.
  source.is_command_ = !config.command.empty() && split == Split::kTrain;
  source.labels_optional_ = config.labels_optional && split == Split::kTest;
  DT_TRY_STATUS(source.CheckColumns());
  if (!source.is_command_) DT_TRY_STATUS(source.FindFiles(split));
  return source;
}

Status SplitSource::CheckColumns() {
  for (const ColumnSpec& column : config_.columns) {
    if (column.length > kFixedLengthMax) {
      return Invalid("data.columns: column \"{}\": length {} found, at most {} expected",
                     column.name, column.length, kFixedLengthMax);
    }
  }
  if (config_.format == DataFormat::kCriteo) return OkStatus();
  if (!IsKeyed(config_.format)) return CheckDelimitedColumns(config_.columns);
  return config_.columns.empty() ? OkStatus() : CheckLibsvmColumns(config_.columns);
}

Status SplitSource::FindFiles(Split split) {
  for (const std::string& file : FilesOf(config_, split)) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) {
      return WithHint(
          NotFound("{}: the file of data.{} cannot be read: {}", file, NameOf(split),
                   std::strerror(errno)),
          "check the path; configs/README.md says where the shipped configurations look");
    }
    std::error_code error;
    const std::string absolute = std::filesystem::absolute(file, error).lexically_normal().string();
    paths_text_ += absolute + "\n";
    // Others may read the cache, so this text, which is in it, has paths as the job file writes
    // them; the cache's name depends on the real paths.
    sources_text_ += fmt::format("{} {} {}.{:09}\n", WithWrittenPaths(absolute), info.st_size,
                                 info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    bytes_ += static_cast<uint64_t>(info.st_size);
    files_.push_back(file);
  }
  return OkStatus();
}

const std::string& SplitSource::name(size_t input) const {
  static const std::string kCommand = "command";
  return is_command_ ? kCommand : files_[input];
}

std::string SplitSource::OptionsText() const {
  std::string text =
      fmt::format("format {} delimiter {} on_error {}\n", static_cast<int>(config_.format),
                  static_cast<int>(config_.delimiter), static_cast<int>(config_.on_error));
  if (labels_optional_) text += "labels optional\n";
  if (given_shape_.has_value()) {
    text += fmt::format("shape {} {}\n", given_shape_->length, given_shape_->weighted);
  }
  return text + EncodeColumns(config_.columns);
}

Result<std::unique_ptr<ByteSource>> SplitSource::Open(size_t input) const {
  return is_command_ ? OpenPipeSource(config_.command) : OpenFileSource(files_[input]);
}

Result<SplitSource::Format> SplitSource::FormatFor(size_t input, std::string_view text) {
  if (!IsKeyed(config_.format) && config_.format != DataFormat::kCriteo) {
    return NamedFormat(input, text);
  }
  if (shared_ == nullptr) {
    shared_ = config_.format == DataFormat::kCriteo ? CriteoFormat(text) : KeyFormat(text);
  }
  Format format{shared_};
  if (config_.format != DataFormat::kCriteo) return format;
  for (const ColumnSpec& column : CriteoColumns()) format.cell_names.push_back(column.name);
  if (!CriteoHasLabel(text)) format.cell_names.erase(format.cell_names.begin());
  return format;
}

void SplitSource::Widen(KeyShape shape) {
  shape_ = shape;
  shared_ = nullptr;
}

std::shared_ptr<const RowFormat> SplitSource::CriteoFormat(std::string_view text) const {
  return MakeCriteoFormat(CriteoHasLabel(text));
}

bool SplitSource::CriteoHasLabel(std::string_view text) const {
  const auto tabs = static_cast<size_t>(std::ranges::count(FirstLine(text), '\t'));
  return !labels_optional_ || tabs + 1 == CriteoColumns().size();
}

std::shared_ptr<const RowFormat> SplitSource::KeyFormat(std::string_view text) {
  LibsvmOptions options{.fields = config_.format == DataFormat::kLibffm,
                        .labels_optional = labels_optional_};
  const bool named = !config_.columns.empty();
  if (!shape_.has_value() && !named) {
    shape_ = ProbeLibsvm(text, options);
    if (shape_->length > kFixedLengthMax) shape_->length = 0;
  }
  options.open_weights = !given_shape_.has_value();
  options.open_length = options.open_weights && !named;
  std::vector<ColumnSpec> columns = config_.columns;
  if (!named) columns = LibsvmColumns(*shape_);
  for (ColumnSpec& column : columns) {
    if (column.is_keys() && shape_.has_value()) column.weighted = shape_->weighted;
  }
  return MakeLibsvmFormat(std::move(columns), options);
}

const ColumnSpec* SplitSource::Missing(const std::vector<std::string>& header) const {
  for (const ColumnSpec& column : config_.columns) {
    if (column.is_crossed()) continue;
    if (labels_optional_ && column.role != ColumnRole::kFeature) continue;
    if (std::ranges::find(header, column.name) == header.end()) return &column;
  }
  return nullptr;
}

Result<SplitSource::Format> SplitSource::NamedFormat(size_t input, std::string_view text) {
  const std::vector<std::string> first = HeaderCells(FirstLine(text), config_.delimiter);
  const ColumnSpec* const missing = Missing(first);
  if (missing == nullptr) {
    if (header_.empty()) header_ = first;
    return Format{FormatOf(first), true, first};
  }
  if (header_.empty()) {
    DT_TRY(header_, TrainHeader());
  }
  if (!header_.empty() && IsHeader(first, header_)) {
    return WithHint(
        Malformed("{}:1: column \"{}\": no such name found in the header, all of data.columns "
                  "expected{}",
                  name(input), missing->name, DidYouMean(missing->name, first)),
        "a file without a header has the cells of the first training file");
  }
  if (header_.empty()) {
    return WithHint(Malformed("{}:1: column \"{}\": no such name found in the first line, a header "
                              "with all of data.columns expected{}",
                              name(input), missing->name, DidYouMean(missing->name, first)),
                    "the first training file must start with the names of its columns");
  }
  return Format{FormatOf(header_), false, header_};
}

// Empty if the first training file has no header or is absent.
Result<std::vector<std::string>> SplitSource::TrainHeader() const {
  if (config_.train.empty()) {
    return std::vector<std::string>();
  }
  Result<std::unique_ptr<ByteSource>> source = OpenFileSource(config_.train.front());
  if (!source.ok()) return std::vector<std::string>();
  BlockReader reader(*std::move(source), config_.train.front());
  std::string text;
  DT_TRY_STATUS(reader.Next(text));
  std::vector<std::string> header = HeaderCells(FirstLine(text), config_.delimiter);
  if (Missing(header) != nullptr) header.clear();
  return header;
}

std::shared_ptr<const RowFormat> SplitSource::FormatOf(
    const std::vector<std::string>& header) const {
  DelimitedOptions options{
      .delimiter = config_.delimiter, .cells = header.size(), .labels_optional = labels_optional_};
  for (const ColumnSpec& column : config_.columns) {
    const auto at = std::ranges::find(header, column.name);
    const bool found = at != header.end();
    options.cell_of_column.push_back(found ? static_cast<size_t>(at - header.begin()) : kNoCell);
  }
  return MakeDelimitedFormat(config_.columns, std::move(options));
}

}  // namespace dt::worker
