// A file as memory, to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"

namespace dt {

// What is read after the file has been cut, or its disk has failed, cannot be had, and there is no
// way on from a load that failed: the process then ends with a sentence that names the file, and
// exit code 1. Immutable: any thread.
class MappedFile {
 public:
  // As OpenForReading.
  static Result<std::unique_ptr<MappedFile>> Open(const std::string& path);
  // For Open: owns the mapping.
  MappedFile(std::span<const std::byte> bytes, const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& last_words() const { return last_words_; }

 private:
  const std::span<const std::byte> bytes_;
  const std::string last_words_;  // The sentence.
};

}  // namespace dt
