#include "server/table/row_slabs.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace dt::server {
namespace {

constexpr uint64_t kFirstSlabBytes = 4096;
constexpr uint64_t kLargestSlabBytes = 64 << 20;

uint32_t FloorLog2(uint64_t value) { return static_cast<uint32_t>(std::bit_width(value)) - 1; }

}  // namespace

RowSlabs::RowSlabs(uint32_t row_bytes)
    : row_bytes_(row_bytes),
      first_shift_(FloorLog2(std::max<uint64_t>(1, kFirstSlabBytes / row_bytes))),
      doublings_(FloorLog2(
          std::max<uint64_t>(1, kLargestSlabBytes / (uint64_t{row_bytes} << first_shift_)))) {
  DT_CHECK(row_bytes > 0);
}

RowSlabs::Place RowSlabs::PlaceOf(uint64_t number) const {
  // Slab d < doublings_ begins at row (2^d - 1) << first_shift_.
  const uint64_t unit = (number >> first_shift_) + 1;
  const uint32_t slab = std::min(FloorLog2(unit), doublings_);
  uint64_t index = number - (((uint64_t{1} << slab) - 1) << first_shift_);
  const uint32_t shift = first_shift_ + doublings_;
  if (slab < doublings_) return {slab, index};
  return {slab + (index >> shift), index & ((uint64_t{1} << shift) - 1)};
}

uint32_t RowSlabs::Add() {
  if (count_ == capacity_) {
    const auto doubled = std::min<uint64_t>(slabs_.size(), doublings_);
    const uint64_t rows = uint64_t{1} << (first_shift_ + doubled);
    slabs_.push_back(PageMemory::Zeroed(rows * row_bytes_));
    capacity_ += rows;
    bytes_ += slabs_.back().size();
  }
  return count_++;
}

void RowSlabs::Clear() {
  slabs_.clear();
  count_ = 0;
  capacity_ = bytes_ = 0;
}

}  // namespace dt::server
