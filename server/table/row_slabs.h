// Rows of one size and their headers, numbered from 0, in slabs that never move:
//
//   slab: row [rows] | header [rows]        rows: a power of two, the slab at most 64 MiB
//
// Headers stand apart from the rows, because a pull does not need them: rows of a multiple of 64
// bytes then begin at a cache line and touch no more lines than they must. A slab is address space
// first; memory comes with the pages that rows touch. The first 2 MiB of rows lie on small pages,
// so that small tables stay small. Owned by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "server/table/page_memory.h"

namespace dt::server {

struct RowHeader {
  Step last_push = 0;
};

class RowSlabs {
 public:
  static constexpr uint32_t kRowsMax = ~0u - 1;  // The two numbers above are no rows.

  // REQUIRES: a multiple of 4, above 0.
  explicit RowSlabs(uint32_t row_bytes);

  // The number of a new row; row and header are zeroed.
  uint32_t Add();
  void Clear();

  // REQUIRES: number < count().
  std::byte* row(uint32_t number) { return slabs_[number >> shift_].data() + OffsetOf(number); }
  const std::byte* row(uint32_t number) const {
    return slabs_[number >> shift_].data() + OffsetOf(number);
  }
  RowHeader& header(uint32_t number) {
    std::byte* const headers = slabs_[number >> shift_].data() + headers_at_;
    return reinterpret_cast<RowHeader*>(headers)[number & mask_];
  }
  const RowHeader& header(uint32_t number) const {
    return const_cast<RowSlabs*>(this)->header(number);
  }

  uint32_t count() const { return count_; }
  // Of the rows and their headers.
  uint64_t bytes() const { return count_ * (row_bytes_ + sizeof(RowHeader)); }

 private:
  uint64_t OffsetOf(uint32_t number) const { return (number & mask_) * row_bytes_; }

  const uint64_t row_bytes_;
  const uint32_t shift_;  // A slab holds 2^shift_ rows.
  const uint32_t mask_;
  const uint64_t headers_at_;
  std::vector<PageMemory> slabs_;
  uint32_t count_ = 0;
};

}  // namespace dt::server
