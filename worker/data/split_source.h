// The inputs of one split, their formats, and the columns that come out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/config/data_config.h"
#include "common/specs/column.h"
#include "worker/data/dataset.h"
#include "worker/data/format/row_format.h"
#include "worker/data/input/byte_source.h"

namespace dt::worker {

const std::vector<std::string>& FilesOf(const DataConfig& config, Split split);
std::string_view NameOf(Split split);

// Used by one thread at a time; the formats that it returns are immutable: any thread.
class SplitSource {
 public:
  // `shape`: that of the key column, if the training data has told it already.
  static Result<SplitSource> Make(const DataConfig& config, Split split,
                                  std::optional<KeyShape> shape);

  size_t inputs() const { return is_command_ ? 1 : files_.size(); }
  bool is_command() const { return is_command_; }
  // For errors: the path, or "command".
  const std::string& name(size_t input) const;
  uint64_t bytes() const { return bytes_; }  // Size of all files; 0 for a command.
  // Everything that decides which rows given inputs have, in a canonical form.
  std::string OptionsText() const;
  // "path size mtime" lines.
  const std::string& sources_text() const { return sources_text_; }
  const std::string& paths_text() const { return paths_text_; }

  Result<std::unique_ptr<ByteSource>> Open(size_t input) const;
  struct Format {
    std::shared_ptr<const RowFormat> rows;
    bool has_header = false;  // The first line is no row.
    // Names of the cells of every line; empty if the format has none.
    std::vector<std::string> cell_names = {};
  };
  // The format of an input that starts with `text`. All inputs give the same columns.
  Result<Format> FormatFor(size_t input, std::string_view text);
  // Later formats have this shape.
  void Widen(KeyShape shape);

 private:
  Status CheckColumns();
  Status FindFiles(Split split);
  std::shared_ptr<const RowFormat> CriteoFormat(std::string_view text) const;
  bool CriteoHasLabel(std::string_view text) const;
  std::shared_ptr<const RowFormat> KeyFormat(std::string_view text);
  Result<Format> NamedFormat(size_t input, std::string_view text);
  std::shared_ptr<const RowFormat> FormatOf(const std::vector<std::string>& header) const;
  Result<std::vector<std::string>> TrainHeader() const;
  // The first listed column that the header must have and lacks.
  const ColumnSpec* Missing(const std::vector<std::string>& header) const;

  DataConfig config_;
  bool is_command_ = false;
  bool labels_optional_ = false;
  std::vector<std::string> files_;
  uint64_t bytes_ = 0;
  std::string sources_text_;
  std::string paths_text_;               // The paths alone.
  std::optional<KeyShape> given_shape_;  // The shape given to Make.
  std::optional<KeyShape> shape_;        // The shape in use: given or found.
  // The format of all inputs, if it does not depend on them.
  std::shared_ptr<const RowFormat> shared_;
  std::vector<std::string> header_;  // The header of the first input that had one.
};

}  // namespace dt::worker
