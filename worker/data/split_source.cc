#include "worker/data/split_source.h"

#include <algorithm>
#include <iterator>

#include "worker/data/cache_meta.h"
#include "worker/data/format/libsvm.h"

namespace dt::worker {
namespace {

std::string OptionsText(const DataConfig& config, const FormatRequest& request) {
  std::string text =
      fmt::format("format {} delimiter {} on_error {}\n", static_cast<int>(config.format),
                  static_cast<int>(config.delimiter), static_cast<int>(config.on_error));
  if (request.labels_optional) text += "labels optional\n";
  if (request.shape.has_value()) {
    text += fmt::format("shape {} {}\n", request.shape->length, request.shape->weighted);
  }
  return text + EncodeColumns(request.columns);
}

Status CheckLengths(const std::vector<ColumnSpec>& columns) {
  for (const ColumnSpec& column : columns) {
    if (column.length > kFixedLengthMax) {
      return Invalid("data.columns: column \"{}\": length {} found, at most {} expected",
                     column.name, column.length, kFixedLengthMax);
    }
  }
  return OkStatus();
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

// The command prints the training data; the other splits are files.
bool IsFromCommand(const DataConfig& config, Split split) {
  return !config.command.empty() && split == Split::kTrain;
}

FormatRequest FormatRequestFor(const DataConfig& config, Split split,
                               std::optional<KeyShape> shape) {
  FormatRequest request{.format = config.format,
                        .columns = WithoutDerived(config.columns),
                        .delimiter = config.delimiter,
                        .labels_optional = config.labels_optional && split == Split::kTest,
                        .shape = shape};
  if (config.train.empty()) return request;
  request.open_training = [file = config.train.front()]() -> Result<NamedSource> {
    DT_TRY(const InputList inputs, InputList::OfFiles({file}, NameOf(Split::kTrain)));
    return inputs.Open(0);
  };
  return request;
}

Result<SplitSource> SplitSource::Make(const DataConfig& config, Split split,
                                      std::optional<KeyShape> shape) {
  FormatRequest request = FormatRequestFor(config, split, shape);
  SplitSource source;
  source.options_text_ = OptionsText(config, request);
  source.format_ = MakeFileFormat(std::move(request));
  DT_TRY_STATUS(CheckLengths(config.columns));
  DT_TRY_STATUS(source.format_->CheckColumns());
  if (IsFromCommand(config, split)) {
    source.inputs_ = InputList::OfCommand(config.command);
  } else {
    DT_TRY(source.inputs_, InputList::OfFiles(FilesOf(config, split), NameOf(split)));
  }
  return source;
}

std::vector<ColumnSpec> WithDerived(std::vector<ColumnSpec> columns, const DataConfig& config) {
  std::ranges::copy(DerivedColumns(config.columns), std::back_inserter(columns));
  return columns;
}

std::vector<ColumnSpec> ColumnsOf(const DataConfig& config, Split split,
                                  std::optional<KeyShape> shape) {
  std::vector<ColumnSpec> columns;
  if (config.format != DataFormat::kBinary) {
    columns = MakeFileFormat(FormatRequestFor(config, split, shape))->columns();
  } else {
    columns = config.columns.empty() ? LibsvmColumns({}) : WithoutDerived(config.columns);
  }
  return WithDerived(std::move(columns), config);
}

KeyShape ShapeOfStripes(const DataConfig& config) {
  KeyShape shape{.length = 0, .weighted = config.columns.empty()};
  for (const ColumnSpec& column : config.columns) shape.weighted |= column.weighted;
  return shape;
}

Result<SplitSource> SplitSource::Make(const DataConfig& config, Split split,
                                      Dataset::Stripe stripe) {
  DT_TRY(SplitSource source, Make(config, split, ShapeOfStripes(config)));
  source.options_text_ += fmt::format("stripe {} of {}\n", stripe.number, stripe.of);
  source.inputs_ = source.inputs_.Part(stripe.number, stripe.of);
  source.is_part_ = true;
  return source;
}

Result<std::unique_ptr<InputReader>> SplitSource::Open(size_t input) {
  DT_TRY(NamedSource opened, inputs_.Open(input));
  return format_->Open(std::move(opened));
}

}  // namespace dt::worker
