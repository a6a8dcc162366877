#include "common/device/block_allocator.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "common/base/check.h"

namespace dt {

BlockAllocator::BlockAllocator(uint64_t bytes, uint64_t alignment)
    : alignment_(alignment), total_(bytes & ~(alignment - 1)) {
  DT_CHECK(std::has_single_bit(alignment));
  if (total_ > 0) AddFree(0, total_);
}

std::optional<uint64_t> BlockAllocator::Allocate(uint64_t bytes) {
  if (bytes > total_) return std::nullopt;
  const uint64_t rounded = (std::max<uint64_t>(bytes, 1) + alignment_ - 1) & ~(alignment_ - 1);
  const auto fitting = by_size_.lower_bound({rounded, 0});
  if (fitting == by_size_.end()) return std::nullopt;
  const auto [size, offset] = *fitting;
  RemoveFree(free_.find(offset));
  if (size > rounded) AddFree(offset + rounded, size - rounded);
  given_.emplace(offset, rounded);
  used_ += rounded;
  return offset;
}

void BlockAllocator::Free(uint64_t offset) {
  const auto piece = given_.find(offset);
  DT_CHECK(piece != given_.end());
  uint64_t begin = offset, bytes = piece->second;
  used_ -= bytes;
  given_.erase(piece);
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == begin + bytes) {
    bytes += next->second;
    RemoveFree(next++);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      bytes += before->second;
      RemoveFree(before);
    }
  }
  AddFree(begin, bytes);
}

bool BlockAllocator::IsAllocated(uint64_t offset, uint64_t bytes) const {
  auto piece = given_.upper_bound(offset);
  if (piece == given_.begin()) return false;
  --piece;
  const uint64_t into = offset - piece->first;
  return into <= piece->second && bytes <= piece->second - into;
}

void BlockAllocator::AddFree(uint64_t offset, uint64_t bytes) {
  free_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void BlockAllocator::RemoveFree(std::map<uint64_t, uint64_t>::iterator piece) {
  by_size_.erase({piece->second, piece->first});
  free_.erase(piece);
}

}  // namespace dt
