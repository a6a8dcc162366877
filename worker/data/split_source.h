// What one split is read from, and how: its inputs, their formats, and the columns that come out.
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

// One thread at a time; the formats it gives are immutable and for any thread.
class SplitSource {
 public:
  // `shape`: of the key column, where it is known already: from the training data.
  static Result<SplitSource> Make(const DataConfig& config, Split split,
                                  std::optional<KeyShape> shape);

  size_t inputs() const { return is_command_ ? 1 : files_.size(); }
  bool is_command() const { return is_command_; }
  // For errors: the path, or "command".
  const std::string& name(size_t input) const;
  uint64_t bytes() const { return bytes_; }  // Of all files; 0 for a command.
  // Everything that decides what the rows of given inputs are, in a canonical form.
  std::string OptionsText() const;
  // "path size mtime" lines.
  const std::string& sources_text() const { return sources_text_; }
  const std::string& paths_text() const { return paths_text_; }

  Result<std::unique_ptr<ByteSource>> Open(size_t input) const;
  struct Format {
    std::shared_ptr<const RowFormat> rows;
    bool has_header = false;  // The first line is no row.
    // The cells of every line; empty where the format names none.
    std::vector<std::string> cell_names = {};
  };
  // For an input that starts with `text`. All inputs give the same columns.
  Result<Format> FormatFor(size_t input, std::string_view text);
  // Formats from now on have this shape.
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
  // The first listed column that the header lacks and must have.
  const ColumnSpec* Missing(const std::vector<std::string>& header) const;

  DataConfig config_;
  bool is_command_ = false;
  bool labels_optional_ = false;
  std::vector<std::string> files_;
  uint64_t bytes_ = 0;
  std::string sources_text_;
  std::string paths_text_;               // The paths alone.
  std::optional<KeyShape> given_shape_;  // Fixed from outside.
  std::optional<KeyShape> shape_;        // In use: given or found.
  std::shared_ptr<const RowFormat>
      shared_;                       // Of all inputs, where the format does not depend on them.
  std::vector<std::string> header_;  // Of the first input that had one.
};

}  // namespace dt::worker
