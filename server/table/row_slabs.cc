#include "server/table/row_slabs.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/base/check.h"

namespace dt::server {
namespace {

constexpr uint64_t kSlabBytesMax = 64 << 20;
constexpr uint64_t kOnSmallPagesBytes = 2 << 20;

uint32_t ShiftFor(uint64_t row_bytes) {
  const uint64_t rows = std::max<uint64_t>(1, kSlabBytesMax / (row_bytes + sizeof(RowHeader)));
  return static_cast<uint32_t>(std::bit_width(rows)) - 1;
}

}  // namespace

RowSlabs::RowSlabs(uint32_t row_bytes)
    : row_bytes_(row_bytes),
      shift_(ShiftFor(row_bytes)),
      mask_((1u << shift_) - 1),
      headers_at_(((row_bytes_ << shift_) + 63) & ~uint64_t{63}) {
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
    slabs_.push_back(PageMemory::Zeroed(headers_at_ + (sizeof(RowHeader) << shift_), pages));
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
