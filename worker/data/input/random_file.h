// The bytes of a file at random, on this machine or on a remote file system. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"

namespace dt::worker {

class RandomFile {
 public:
  virtual ~RandomFile() = default;
  // Fills `out` with the bytes from position `at` and returns their number, which is smaller only
  // at the end of the file. Unavailable or Timeout if the disk or the network fails.
  virtual Result<size_t> ReadAt(uint64_t at, std::span<char> out) const = 0;
  // The size when the file was opened.
  virtual uint64_t size() const = 0;
  // Whether each read is a request over the network, so that few large ones are better.
  virtual bool is_remote() const { return false; }
};

// Opens a file of this machine, or of a remote file system if the path is a URI (IsRemotePath).
// NotFound if there is none.
Result<std::shared_ptr<const RandomFile>> OpenRandomFile(const std::string& path);

// Bytes in memory, which must outlive the file. For tests.
std::shared_ptr<const RandomFile> MakeMemoryFile(std::span<const char> bytes);

}  // namespace dt::worker
