#include "server/table/row_slabs.h"

#include <bit>
#include <cstring>

#include "common/base/check.h"

namespace dt::server {
namespace {

constexpr uint64_t kSlabBytesMax = 64 << 20;
constexpr uint64_t kCacheLineBytes = 64;
constexpr uint64_t kOnSmallPagesBytes = 2 << 20;

}  // namespace

RowSlabs::RowSlabs(uint32_t row_bytes)
    : row_bytes_(row_bytes),
      together_(kCacheLineBytes % (row_bytes_ + sizeof(RowHeader)) == 0),
      row_stride_(together_ ? row_bytes_ + sizeof(RowHeader) : row_bytes_),
      header_stride_(together_ ? row_stride_ : sizeof(RowHeader)),
      headers_at_(together_ ? row_bytes_ : kGroup * row_bytes_),
      group_bytes_(kGroup * (row_bytes_ + sizeof(RowHeader))),
      shift_(static_cast<uint32_t>(std::bit_width(kSlabBytesMax / group_bytes_ * kGroup)) - 1),
      mask_((1u << shift_) - 1) {
  DT_CHECK(row_bytes > 0 && row_bytes % 4 == 0);
}

uint32_t RowSlabs::Add() {
  if (free_ != 0) {
    --free_;
    const uint32_t number = first_free_;
    std::memcpy(&first_free_, row(number), sizeof(first_free_));
    return number;
  }
  const uint32_t number = places_;
  DT_CHECK_MSG(number < kRowsMax, "{} rows of one table on one executor", number);
  if ((number & mask_) == 0) {
    const auto pages = slabs_.empty() ? PageMemory::Pages::kSmall : PageMemory::Pages::kHuge;
    slabs_.push_back(PageMemory::Zeroed((group_bytes_ << shift_) / kGroup, pages));
  }
  if (number == kOnSmallPagesBytes / row_bytes_) slabs_[0].UseHugePages();
  ++places_;
  return number;
}

void RowSlabs::Remove(uint32_t number) {
  std::memcpy(row(number), &first_free_, sizeof(first_free_));
  first_free_ = number;
  ++free_;
}

void RowSlabs::Clear() {
  slabs_.clear();
  places_ = free_ = 0;
}

}  // namespace dt::server
