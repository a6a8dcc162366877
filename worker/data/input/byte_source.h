// The bytes of an input, decompressed, from front to back. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"

namespace dt::worker {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `out` from the front and returns how many bytes; less than asked, only at the end.
  // Errors: Malformed for damaged compression, Unavailable for a failing disk or command.
  virtual Result<size_t> Read(std::span<char> out) = 0;
  // Bytes of the file taken so far, before decompression: for estimates.
  virtual uint64_t consumed() const = 0;
};

// A file; gzip and zstd are recognised by their first bytes. NotFound where there is none.
Result<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path);

// What `command` prints, run by /bin/sh with our standard error. Its exit status is checked at the
// end of its output: not 0 is Unavailable. A command still running when the source is closed is
// ended.
Result<std::unique_ptr<ByteSource>> OpenPipeSource(const std::string& command);

// Layers over the bytes of a file; `name` is for errors.
std::unique_ptr<ByteSource> MakeGzipSource(std::unique_ptr<ByteSource> packed, std::string name);
std::unique_ptr<ByteSource> MakeZstdSource(std::unique_ptr<ByteSource> packed, std::string name);

// Of bytes in memory, which must outlive it. For tests of the layers.
std::unique_ptr<ByteSource> MakeMemorySource(std::span<const char> bytes);

}  // namespace dt::worker
