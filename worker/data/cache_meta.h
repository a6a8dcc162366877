// What a cache says about itself, at the end of its file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/specs/column.h"

namespace dt::worker {

struct CacheMeta {
  std::string options;  // How the sources were read, in a canonical form.
  std::string sources;  // "path size mtime" lines.
  std::vector<ColumnSpec> columns;
  uint64_t rows = 0;
  uint64_t heap_words = 0;
  uint64_t rows_skipped = 0;
  std::string first_skipped;           // The error of the first of them.
  std::vector<uint64_t> chunk_hashes;  // XXH3 of each kCacheChunkBytes of records and heap.
  uint64_t fingerprint = 0;            // Of columns, rows and chunk_hashes.
};

inline constexpr uint64_t kCacheChunkBytes = 4 << 20;

std::string EncodeMeta(const CacheMeta& meta);
// DataLoss if the bytes are not what EncodeMeta makes. Sizes are checked before anything is
// believed.
Result<CacheMeta> DecodeMeta(std::string_view bytes);

// All that a column says, in a canonical form.
std::string EncodeColumns(std::span<const ColumnSpec> columns);
// From the other fields.
uint64_t FingerprintOf(const CacheMeta& meta);

}  // namespace dt::worker
