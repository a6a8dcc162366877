// Allocates pieces of one address range, as offsets from its begin. Does not touch the memory. One
// thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace dt {

// Best fit: takes the smallest free piece that is large enough, and among equal ones the lowest.
// Adjacent free pieces are merged. Each call takes O(log pieces).
class BlockAllocator {
 public:
  // REQUIRES: alignment is a power of two. The part of `bytes` above the last multiple of it is not
  // used.
  BlockAllocator(uint64_t bytes, uint64_t alignment);

  // Returns a multiple of the alignment, or nothing if no free piece is large enough. An allocation
  // of 0 bytes also takes a piece.
  std::optional<uint64_t> Allocate(uint64_t bytes);
  // REQUIRES: `offset` is from Allocate and has not been freed.
  void Free(uint64_t offset);

  // Whether [offset, offset + bytes) is inside one allocated piece.
  bool IsAllocated(uint64_t offset, uint64_t bytes) const;
  uint64_t bytes_used() const { return used_; }
  uint64_t bytes_total() const { return total_; }
  uint64_t largest_free() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  void AddFree(uint64_t offset, uint64_t bytes);
  void RemoveFree(std::map<uint64_t, uint64_t>::iterator piece);

  const uint64_t alignment_, total_;
  uint64_t used_ = 0;
  std::map<uint64_t, uint64_t> free_, given_;        // Offset → bytes.
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // (bytes, offset) of the pieces in free_.
};

}  // namespace dt
