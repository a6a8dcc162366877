// Cells of the files that are predicted for, as they are written, beside the predictions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/data/block.h"
#include "worker/data/input/block_reader.h"
#include "worker/data/split_source.h"

namespace dt::worker {

// Reads the test split again, from front to back. One thread at a time.
class KeptColumns {
 public:
  // For config.kept_columns. Invalid: the format names no cells, or a file has none of that name.
  static Result<std::unique_ptr<KeptColumns>> Open(const DataConfig& config);

  // Appends the cells of the next sample, each with a comma behind it, in quotes where CSV needs
  // them. Samples that data.on_error skips are passed over. DataLoss: there is no further sample.
  Status AppendNext(std::string& line);

  // Called by Open.
  KeptColumns(SplitSource source, std::vector<std::string> names)
      : source_(std::move(source)), names_(std::move(names)) {}

 private:
  Status OpenInput();

  SplitSource source_;
  const std::vector<std::string> names_;
  size_t input_ = 0;
  std::unique_ptr<BlockReader> reader_;  // Of input_.
  SplitSource::Format format_;           // Of input_.
  std::vector<size_t> cells_;            // Of a line of input_, by name.
  std::string text_;
  std::string_view rest_;  // Of text_.
  LineScratch scratch_;
  Block block_;
};

}  // namespace dt::worker
