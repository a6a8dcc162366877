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
  // `name` is for errors.
  BlockReader(std::unique_ptr<ByteSource> source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}

  // Replaces `text` by the next lines, each with its end, about kBlockBytes of them; empty at the
  // end. The last line of the input may lack its end. A byte order mark at the start is removed.
  Status Next(std::string& text);
  uint64_t consumed() const { return source_->consumed(); }

 private:
  std::unique_ptr<ByteSource> source_;
  std::string name_;
  std::string rest_;  // The start of a line whose end has not been read.
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace dt::worker
