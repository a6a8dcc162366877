// The description of a cache, at the end of its file.
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
  std::string first_skipped;           // The error of the first row skipped.
  std::vector<uint64_t> chunk_hashes;  // XXH3 of each kCacheChunkBytes of records and heap.
  uint64_t fingerprint = 0;            // Hash of columns, rows and chunk_hashes.
};

inline constexpr uint64_t kCacheChunkBytes = 4 << 20;

std::string EncodeMeta(const CacheMeta& meta);
// DataLoss if the bytes are not an output of EncodeMeta. Sizes are checked before they are used.
Result<CacheMeta> DecodeMeta(std::string_view bytes);

// All properties of the columns, in a canonical form.
std::string EncodeColumns(std::span<const ColumnSpec> columns);
// The fingerprint that the other fields give.
uint64_t FingerprintOf(const CacheMeta& meta);

}  // namespace dt::worker
