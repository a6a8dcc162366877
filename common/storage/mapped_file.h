// A file mapped into memory for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"

namespace dt {

// If the file is truncated while it is mapped, or its disk fails, reading the missing part ends the
// process with a sentence that names the file, and with exit code 1: a failed load cannot be
// handled. Immutable: any thread.
class MappedFile {
 public:
  // Errors are those of OpenForReading.
  static Result<std::unique_ptr<MappedFile>> Open(const std::string& path);
  // Use Open. Takes ownership of the mapping.
  MappedFile(std::span<const std::byte> bytes, const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& last_words() const { return last_words_; }

 private:
  const std::span<const std::byte> bytes_;
  const std::string last_words_;  // The sentence for standard error.
};

}  // namespace dt
