// Copies cells of the test files, as they are written there, into the file of predictions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/data/block.h"
#include "worker/data/format/line_format.h"
#include "worker/data/split_source.h"

namespace dt::worker {

// Reads the test split again, from front to back. One thread at a time.
class KeptColumns {
 public:
  // For config.kept_columns. Invalid: the format names no cells, or a file lacks one of the names.
  static Result<std::unique_ptr<KeptColumns>> Open(const DataConfig& config);

  // Appends the cells of the next sample, each with a comma behind it, in quotes where CSV needs
  // them. Skips the samples that data.on_error skips. DataLoss: there is no further sample.
  Status AppendNext(std::string& line);

  // Called by Open.
  KeptColumns(SplitSource source, std::vector<std::string> names)
      : source_(std::move(source)), names_(std::move(names)) {}

 private:
  Status OpenInput();

  SplitSource source_;
  const std::vector<std::string> names_;
  size_t input_ = 0;
  std::unique_ptr<InputReader> reader_;  // The reader of input_.
  const LineInput* lines_ = nullptr;     // The lines of input_; owned by reader_.
  std::vector<size_t> cells_;            // Indices of the cells in a line of input_, by name.
  std::string text_;
  std::string_view rest_;  // The unread rest of text_.
  RowScratch scratch_;
  Block block_;
};

}  // namespace dt::worker
