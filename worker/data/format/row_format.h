// From lines to rows. A format is immutable: any thread.
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

// What the data tells about the key column of libsvm and libffm, where the job file leaves it open.
struct KeyShape {
  uint32_t length = 0;  // 0: ragged.
  bool weighted = false;
  friend bool operator==(const KeyShape&, const KeyShape&) = default;
};

// Room for the pieces of one line; kept between lines.
struct LineScratch {
  std::vector<std::string_view> cells;
  std::vector<Key> keys;
  std::vector<float> weights;
  std::string unquoted;
  KeyShape
      wider;  // Set where a line needs a wider shape than the format's, and the format may widen.
};

// The label of a sample that has none, where that is allowed: not a number.
inline constexpr float kNoLabel = std::numeric_limits<float>::quiet_NaN();

enum class LineResult { kRow, kNothing, kBad, kWiden };

class RowFormat {
 public:
  explicit RowFormat(RowLayout layout) : layout_(std::move(layout)) {}
  virtual ~RowFormat() = default;
  const RowLayout& layout() const { return layout_; }

  // One line without its end, not empty, into a row of `block` that has been started. kNothing: a
  // comment. kBad: `error` says why. kWiden: scratch.wider holds the shape that would do. The
  // caller keeps or drops the row.
  virtual LineResult Parse(std::string_view line, LineScratch& scratch, Block& block,
                           std::string& error) const = 0;
  // Bytes of text per row, roughly; sizes memory only.
  virtual size_t line_bytes() const { return 64; }

 private:
  const RowLayout layout_;
};

// Takes the first line off, and returns it without its end.
std::string_view TakeLine(std::string_view& text);

// The outcome of one block of text.
struct BlockResult {
  Block block;
  uint64_t lines = 0;      // Of text, empty ones included.
  uint64_t bad_lines = 0;  // Not in `block`.
  uint64_t first_bad = 0;  // Counts from 0 within the text.
  std::string first_error;
  bool widen = false;  // The block is unusable: read again with the shape `wider`.
  KeyShape wider;
};

// Lines end with "\n" or "\r\n", the last one perhaps with nothing. Empty lines are passed over.
// Stops at the first line that needs a wider shape.
void ParseBlock(const RowFormat& format, std::string_view text, LineScratch& scratch,
                BlockResult& out);

}  // namespace dt::worker
