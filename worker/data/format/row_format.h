// Turns lines into rows. A format is immutable: any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/data/block.h"
#include "worker/data/row_layout.h"

namespace dt::worker {

// The shape of the key column of libsvm and libffm. The data tells it where the job file does not.
struct KeyShape {
  uint32_t length = 0;  // 0: ragged.
  bool weighted = false;
  friend bool operator==(const KeyShape&, const KeyShape&) = default;
};

// Working memory for one line; kept between lines.
struct LineScratch {
  std::vector<std::string_view> cells;
  std::vector<Key> keys;
  std::vector<float> weights;
  std::string unquoted;
  // Set if a line needs a wider shape than the format's, and the format may widen.
  KeyShape wider;
};

// The label of a sample without one, where that is allowed: not a number.
inline constexpr float kNoLabel = std::numeric_limits<float>::quiet_NaN();

enum class LineResult { kRow, kNothing, kBad, kWiden };

class RowFormat {
 public:
  explicit RowFormat(RowLayout layout) : layout_(std::move(layout)) {}
  virtual ~RowFormat() = default;
  const RowLayout& layout() const { return layout_; }

  // Parses one line, without its end and not empty, into a row of `block` that has been started.
  // kNothing: the line is a comment. kBad: `error` says why. kWiden: scratch.wider holds the shape
  // that would fit. The caller keeps or drops the row.
  virtual LineResult Parse(std::string_view line, LineScratch& scratch, Block& block,
                           std::string& error) const = 0;
  // Bytes of text per row, roughly; sizes memory only.
  virtual size_t line_bytes() const { return 64; }

 private:
  const RowLayout layout_;
};

// Removes the first line from `text`, and returns it without its end.
std::string_view TakeLine(std::string_view& text);

// The outcome of one block of text.
struct BlockResult {
  Block block;
  uint64_t lines = 0;      // Lines of the text, including empty ones.
  uint64_t bad_lines = 0;  // Lines that are not in `block`.
  uint64_t first_bad = 0;  // Line number within the text, from 0.
  std::string first_error;
  bool widen = false;  // The block is unusable: read again with the shape `wider`.
  KeyShape wider;
};

// Parses lines that end with "\n" or "\r\n", the last one perhaps with nothing. Skips empty lines.
// Stops at the first line that needs a wider shape.
void ParseBlock(const RowFormat& format, std::string_view text, LineScratch& scratch,
                BlockResult& out);

}  // namespace dt::worker
