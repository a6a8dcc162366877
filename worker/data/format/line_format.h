// Formats in which a row is a line of text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/format/file_format.h"

namespace dt::worker {

enum class LineResult { kRow, kNothing, kBad, kWiden };

// Turns lines into rows.
class LineDecoder : public BlockDecoder {
 public:
  using BlockDecoder::BlockDecoder;

  // Parses one line, without its end and not empty, into a row of `block` that has been started.
  // kNothing: the line is a comment. kBad: `error` says why. kWiden: scratch.wider holds the shape
  // that would fit. The caller keeps or drops the row.
  virtual LineResult Parse(std::string_view line, RowScratch& scratch, Block& block,
                           std::string& error) const = 0;
  // Bytes of text per row, roughly; sizes memory only.
  virtual size_t line_bytes() const { return 64; }

  // Parses lines that end with "\n" or "\r\n", the last one perhaps with nothing. Skips empty
  // lines.
  void Decode(std::string_view bytes, RowScratch& scratch, BlockResult& out) const final;
};

// Removes the first line from `text`, and returns it without its end.
std::string_view TakeLine(std::string_view& text);
// The first line, without its end.
std::string_view FirstLine(std::string_view text);

// The lines of one input.
struct LineInput {
  std::shared_ptr<const LineDecoder> decoder;
  bool has_header = false;  // The first line is no row.
  // Names of the cells of every line; empty if the format has none.
  std::vector<std::string> cell_names = {};
};

// A format of lines. The job file and the start of an input decide what the input's lines mean.
class LineFormat : public FileFormat {
 public:
  Result<std::unique_ptr<InputReader>> Open(NamedSource input) final;

  // Describes the lines of an input that starts with the whole lines `text`, which are not empty.
  // `name` is the input's, for errors.
  virtual Result<LineInput> LinesOf(std::string_view text, const std::string& name) = 0;
};

}  // namespace dt::worker
