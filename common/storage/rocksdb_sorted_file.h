// Immutable files of pairs in ascending bytewise key order, with a checksum on every block
// (RocksDB's table format). Written once, front to back; read by key. One thread per object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace dt {

class SortedFileWriter {
 public:
  // Replaces a file of that name. `bytes_expected`: for the sentence about a full disk.
  static Result<std::unique_ptr<SortedFileWriter>> Open(const std::string& path,
                                                        uint64_t bytes_expected);
  // A file that was not finished is removed.
  ~SortedFileWriter();

  // REQUIRES: the key is greater than the one before.
  Status Add(std::string_view key, std::string_view value);
  // On disk when it returns. REQUIRES: at least one Add.
  Status Finish();

 private:
  struct Impl;
  explicit SortedFileWriter(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// Errors: NotFound; DataLoss naming the file, as soon as a damaged block is met.
class SortedFileReader {
 public:
  static Result<std::unique_ptr<SortedFileReader>> Open(const std::string& path);
  ~SortedFileReader();

  // To the first pair whose key is not less than `key`.
  Status Seek(std::string_view key);
  Status Next();
  // False at the end. The views live until the next Seek or Next.
  bool valid() const;
  std::string_view key() const;
  std::string_view value() const;

 private:
  struct Impl;
  explicit SortedFileReader(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace dt
