// Rows of one size, numbered from 0, in slabs that never move. The first slab is a page or so; each
// next one is twice as large, up to a bound, so that small tables stay small and large ones need
// few slabs. Owned by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "server/table/page_memory.h"

namespace dt::server {

class RowSlabs {
 public:
  explicit RowSlabs(uint32_t row_bytes);

  // The number of a new row, zeroed.
  uint32_t Add();
  void Clear();

  std::byte* row(uint32_t number) {
    const Place place = PlaceOf(number);
    return slabs_[place.slab].data() + place.index * row_bytes_;
  }
  const std::byte* row(uint32_t number) const { return const_cast<RowSlabs*>(this)->row(number); }
  uint32_t count() const { return count_; }
  // What is reserved; pages that no row has touched cost nothing.
  uint64_t bytes() const { return bytes_; }
  // Of the rows themselves.
  uint64_t used_bytes() const { return uint64_t{count_} * row_bytes_; }

 private:
  struct Place {
    uint64_t slab, index;
  };
  Place PlaceOf(uint64_t number) const;

  const uint64_t row_bytes_;
  const uint32_t first_shift_;  // The first slab holds 2^first_shift_ rows,
  const uint32_t doublings_;    // slab d of the first ones 2^d times as many, and all later ones as
                                // many as slab doublings_.
  std::vector<PageMemory> slabs_;
  uint32_t count_ = 0;
  uint64_t capacity_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace dt::server
