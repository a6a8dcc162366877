// How inputs are written: one thread cuts the bytes of an input into blocks, and any number of
// threads turn blocks into rows.
//
// Formats of lines share one adapter (line_format.h). A format of column chunks or of messages
// implements the three classes itself. No format knows where its bytes come from; see
// input/input_list.h for that.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/specs/column.h"
#include "common/specs/data_format.h"
#include "worker/data/block.h"
#include "worker/data/input/byte_source.h"
#include "worker/data/row_layout.h"

namespace dt::worker {

inline constexpr uint32_t kFixedLengthMax = 1 << 16;  // Longer lists are stored as ragged.

// The label of a sample without one, where that is allowed: not a number.
inline constexpr float kNoLabel = std::numeric_limits<float>::quiet_NaN();

// The shape of the key column of libsvm and libffm. The data tells it where the job file does not.
struct KeyShape {
  uint32_t length = 0;  // 0: ragged.
  bool weighted = false;
  friend bool operator==(const KeyShape&, const KeyShape&) = default;
};

// Working memory for one row; kept between rows.
struct RowScratch {
  std::vector<std::string_view> cells;
  std::vector<Key> keys;
  std::vector<float> weights;  // Also the numbers of a vector.
  std::string unquoted;
  // Set if a row needs a wider shape than the decoder's, and the decoder may be widened.
  KeyShape wider;
};

// The outcome of one block.
struct BlockResult {
  // Makes it the outcome of a block without rows.
  void Clear(const RowLayout& layout, uint64_t expected_rows);

  Block block;
  uint64_t lines = 0;      // Lines (or rows, where there are no lines), including empty ones.
  uint64_t bad_lines = 0;  // Lines that are not in `block`.
  uint64_t first_bad = 0;  // Line number within the block, from 0.
  std::string first_error;
  std::string first_place;  // Where the first bad line is, if its number in the file does not tell.
  Status failed;            // Not OK: the block cannot be read, and is unusable.
  bool widen = false;       // The block is unusable: read again with the shape `wider`.
  KeyShape wider;
};

// Turns the bytes of a block into rows. Any thread.
class BlockDecoder {
 public:
  explicit BlockDecoder(RowLayout layout) : layout_(std::move(layout)) {}
  virtual ~BlockDecoder() = default;
  const RowLayout& layout() const { return layout_; }

  // Replaces `out` by the rows of one block. Stops at the first row that needs a wider shape.
  virtual void Decode(std::string_view bytes, RowScratch& scratch, BlockResult& out) const = 0;

 private:
  const RowLayout layout_;
};

struct LineInput;

// Reads the blocks of one input, from front to back. One thread at a time.
class InputReader {
 public:
  virtual ~InputReader() = default;
  // Replaces `bytes` by the next block, which can be decoded without the others; empty at the end.
  virtual Status Next(std::string& bytes) = 0;
  // The decoder of the blocks. REQUIRES: Next has returned a block.
  virtual std::shared_ptr<const BlockDecoder> decoder() const = 0;
  // The number of lines before the first block, that is, of the header.
  virtual uint64_t header_lines() const { return 0; }
  // Whether an input without a block is sound. REQUIRES: Next has been called.
  virtual bool may_lack_rows() const { return header_lines() > 0; }
  // Where the part of the input begins that is read.
  virtual uint64_t first_byte() const { return 0; }
  // Bytes of the input read so far, before decompression.
  virtual uint64_t consumed() const = 0;
  // The lines of the input; null if its format has no lines, or if Next has found no bytes yet.
  virtual const LineInput* lines() const { return nullptr; }
};

// The format of the inputs of one split. One thread at a time. It outlives its readers.
class FileFormat {
 public:
  virtual ~FileFormat() = default;
  // Invalid if the listed columns ask for something that the format cannot read.
  virtual Status CheckColumns() const { return OkStatus(); }
  // The columns, as far as they are known before an input has been read.
  virtual std::vector<ColumnSpec> columns() const = 0;
  // All inputs give the same columns.
  virtual Result<std::unique_ptr<InputReader>> Open(NamedSource input) = 0;
  // Whether the data may decide the shape of the key column.
  virtual bool has_key_shape() const { return false; }
  // Readers that are opened later have this shape. REQUIRES: has_key_shape().
  virtual void Widen(KeyShape /*shape*/) {}
};

// Everything that a format is made from.
struct FormatRequest {
  DataFormat format = DataFormat::kLibsvm;
  std::vector<ColumnSpec> columns = {};  // The columns as in the job file; may be empty.
  char delimiter = ',';
  bool labels_optional = false;  // Samples need neither label nor weight.
  // The shape of the key column in the training data, if it is known.
  std::optional<KeyShape> shape = {};
  // Opens the first training file, whose header other files may rely on. Null: there is none.
  std::function<Result<NamedSource>()> open_training = nullptr;
};

// Declares one function for each format that is decoded: MakeCsvFormat and so on. Each is in its
// format's own file.
#define DT_DECLARE_FORMAT(Name) \
  std::unique_ptr<FileFormat> Make##Name##Format(FormatRequest request);
DT_DATA_FORMATS(DT_DECLARE_FORMAT)
#undef DT_DECLARE_FORMAT

// Calls the function for request.format. REQUIRES: a format other than kBinary, which is not
// decoded.
std::unique_ptr<FileFormat> MakeFileFormat(FormatRequest request);

}  // namespace dt::worker
