// Hands out pieces of one range of addresses, as offsets from its begin. Touches no memory. One
// thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace dt {

// Best fit: of the free pieces that are large enough the smallest, of equals the lowest. Free
// neighbours are one piece. O(log pieces) each.
class BlockAllocator {
 public:
  // REQUIRES: alignment is a power of two. Of `bytes` whole multiples of it are used.
  BlockAllocator(uint64_t bytes, uint64_t alignment);

  // A multiple of the alignment; nothing if no free piece is large enough. 0 bytes take a piece
  // too.
  std::optional<uint64_t> Allocate(uint64_t bytes);
  // REQUIRES: was given by Allocate, and not freed since.
  void Free(uint64_t offset);

  // Whether [offset, offset + bytes) lies in one piece that is given out.
  bool IsAllocated(uint64_t offset, uint64_t bytes) const;
  uint64_t bytes_used() const { return used_; }
  uint64_t bytes_total() const { return total_; }
  uint64_t largest_free() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  void AddFree(uint64_t offset, uint64_t bytes);
  void RemoveFree(std::map<uint64_t, uint64_t>::iterator piece);

  const uint64_t alignment_, total_;
  uint64_t used_ = 0;
  std::map<uint64_t, uint64_t> free_, given_;        // Bytes by offset.
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // Of free_: bytes, offset.
};

}  // namespace dt
