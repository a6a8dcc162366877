// The inputs of one split and their format.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/config/data_config.h"
#include "worker/data/dataset.h"
#include "worker/data/format/file_format.h"
#include "worker/data/input/input_list.h"

namespace dt::worker {

const std::vector<std::string>& FilesOf(const DataConfig& config, Split split);
std::string_view NameOf(Split split);
// Whether a command prints the split, which then has no files.
bool IsFromCommand(const DataConfig& config, Split split);

// The key shape of libsvm and libffm if the data is cut into stripes, none of which tells that of
// the others: lists of any length, with weights unless data.columns says that there are none.
KeyShape ShapeOfStripes(const DataConfig& config);

// What the format of `split` is made from; see MakeFileFormat.
FormatRequest FormatRequestFor(const DataConfig& config, Split split,
                               std::optional<KeyShape> shape);

// The columns of a split's data set if no row of it is known yet. `shape`: see SplitSource::Make.
std::vector<ColumnSpec> ColumnsOf(const DataConfig& config, Split split,
                                  std::optional<KeyShape> shape);
// Adds those that are computed from columns of the files.
std::vector<ColumnSpec> WithDerived(std::vector<ColumnSpec> columns, const DataConfig& config);

// Used by one thread at a time; the decoders of its readers are immutable: any thread.
class SplitSource {
 public:
  // `shape`: that of the key column, if the training data has told it already. Invalid if
  // data.columns does not fit the format; NotFound if a file is absent.
  static Result<SplitSource> Make(const DataConfig& config, Split split,
                                  std::optional<KeyShape> shape);
  // One of the stripes into which the split is cut.
  static Result<SplitSource> Make(const DataConfig& config, Split split, Dataset::Stripe stripe);

  const InputList& inputs() const { return inputs_; }
  // Everything that decides which rows given inputs have, in a canonical form.
  const std::string& options_text() const { return options_text_; }

  std::vector<ColumnSpec> columns() const { return format_->columns(); }
  // Whether it is one of several parts, which may be without rows.
  bool is_part() const { return is_part_; }

  // Opens an input at its start. The source must outlive the reader.
  Result<std::unique_ptr<InputReader>> Open(size_t input);
  // Readers that are opened later have this shape.
  void Widen(KeyShape shape) { format_->Widen(shape); }

 private:
  std::unique_ptr<FileFormat> format_;
  std::string options_text_;
  InputList inputs_;
  bool is_part_ = false;
};

}  // namespace dt::worker
