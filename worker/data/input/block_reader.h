// Cuts an input into blocks of whole lines. One thread at a time.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "worker/data/input/byte_source.h"

namespace dt::worker {

inline constexpr size_t kBlockBytes = 1 << 20;
// A longer line is refused: the input is no text.
inline constexpr size_t kLineBytesMax = 64 << 20;

class BlockReader {
 public:
  // `name` is for errors. Only lines that begin in `part` are meant; the source begins at `at`.
  BlockReader(std::unique_ptr<ByteSource> source, std::string name, ByteRange part = {},
              uint64_t at = 0)
      : source_(std::move(source)), name_(std::move(name)), part_(part), at_(at) {}

  // Replaces `text` by the next lines, each with its end, about kBlockBytes of them; empty at the
  // end. At most a few thousand bytes behind the part are read, if lines are not long. The last
  // line of the input may lack its end. A byte order mark at the start is removed.
  Status Next(std::string& text);
  uint64_t consumed() const { return source_->consumed(); }

 private:
  size_t Room(size_t before) const;
  Status ReadLines(std::string& text);
  // Keeps of `text`, which begins at position at_, the lines that are meant.
  void KeepPart(std::string& text);

  const std::unique_ptr<ByteSource> source_;
  const std::string name_;
  const ByteRange part_;
  uint64_t at_;       // Position of the next line.
  std::string rest_;  // The start of a line whose end has not been read.
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace dt::worker
