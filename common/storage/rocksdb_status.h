// Converts RocksDB's errors to ours. Only for the files of this directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include "common/base/status.h"

namespace dt {

// `doing` is "writing", "opening", …; `bytes_needed` is 0 if unknown.
Status FromRocks(const rocksdb::Status& status, std::string_view doing, const std::string& path,
                 uint64_t bytes_needed = 0);

// The error of a full disk if fewer than `bytes_needed` bytes are free. Writes nothing.
Status CheckRoom(std::string_view doing, const std::string& path, uint64_t bytes_needed);

inline rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view FromSlice(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

}  // namespace dt
