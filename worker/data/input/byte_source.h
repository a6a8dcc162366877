// The bytes of an input, decompressed, from front to back. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"
#include "worker/data/input/random_file.h"

namespace dt::worker {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `out` from the front and returns the number of bytes, which is smaller only at the end.
  // Errors: Malformed for damaged compression, Unavailable for a failing disk or command.
  virtual Result<size_t> Read(std::span<char> out) = 0;
  // Bytes of the file read so far, before decompression: for estimates.
  virtual uint64_t consumed() const = 0;
  // The file whose bytes these are, for formats that read at random; null for the bytes of a
  // compressed file or a command.
  virtual std::shared_ptr<const RandomFile> file() const { return nullptr; }
};

// Positions in a file.
struct ByteRange {
  uint64_t begin = 0, end = ~uint64_t{0};
  bool Has(uint64_t at) const { return begin <= at && at < end; }
  bool is_all() const { return begin == 0 && end == ~uint64_t{0}; }
};

// A source, and what errors call it: a path, or "command".
struct NamedSource {
  std::unique_ptr<ByteSource> bytes;
  std::string name;
  ByteRange part = {};  // Only the rows that begin here are meant.
};

// Opens a file as OpenRandomFile does; gzip and zstd are recognised by their first bytes.
Result<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path);
// The bytes of a file from this position on.
std::unique_ptr<ByteSource> SourceFrom(std::shared_ptr<const RandomFile> file, uint64_t at);

// Reads the output of `command`, run by /bin/sh with our standard error. The exit status is checked
// at the end of the output: if it is not 0, the error is Unavailable. A command that still runs
// when the source is closed is killed.
Result<std::unique_ptr<ByteSource>> OpenPipeSource(const std::string& command);

// Decompress the bytes of a file; `name` is for errors.
std::unique_ptr<ByteSource> MakeGzipSource(std::unique_ptr<ByteSource> packed, std::string name);
std::unique_ptr<ByteSource> MakeZstdSource(std::unique_ptr<ByteSource> packed, std::string name);

// Reads bytes in memory, which must outlive the source. For tests of the layers.
std::unique_ptr<ByteSource> MakeMemorySource(std::span<const char> bytes);

}  // namespace dt::worker
