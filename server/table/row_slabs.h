// Rows of one size and their headers, numbered from 0, in slabs that never move:
//
//   slab: group [groups]                    groups: a power of two, the slab at most 64 MiB
//   group: row [16] | header [16]           whole cache lines
//      or: (row | header) [16]              where a cache line holds a whole number of these
//
// Headers are apart from the rows, because a pull rarely needs them: rows of a multiple of 64
// bytes then begin at a cache line and touch no more lines than they must. They are near the rows,
// because a push needs both: mostly in one page, so that one address is translated. Behind a short
// row, such as one value and its Adagrad state, the header costs a pull and a push no further line.
// A slab is address space at first; memory comes with the pages that rows touch. The first 2 MiB of
// rows are on small pages, so that small tables stay small. Owned by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "server/table/page_memory.h"

namespace dt::server {

// `change` tells how the row's copy on disk relates to the row. kOnDisk: they are equal; else it is
// the period of the last change, 1 or 2 (TableRows::change_period). It is local to this process,
// and in no record or checksum.
class RowHeader {
 public:
  static constexpr uint32_t kOnDisk = 0;
  static constexpr Step kNever = ~Step{0} >> 2;  // The last push of a row that had none.
  RowHeader() = default;
  RowHeader(Step last_push, uint32_t change) : bits_(last_push << 2 | change) {}

  Step last_push() const { return bits_ >> 2; }
  uint32_t change() const { return bits_ & 3; }
  // Steps since the last push, or since before step 0 if there was none. 1 if the last push was not
  // at an earlier step: asynchronous workers push their steps in any order, and a sender that names
  // a key twice harms nothing else.
  uint64_t StepsSinceUpdate(Step step) const {
    const uint64_t steps = (step - last_push()) & kNever;
    return steps == 0 || steps > kNever / 2 ? 1 : steps;
  }
  // The last push after one at `step`.
  Step LastAfter(Step step) const {
    return last_push() == kNever || step > last_push() ? step : last_push();
  }

 private:
  uint64_t bits_ = 0;
};
static_assert(sizeof(RowHeader) == 8);

class RowSlabs {
 public:
  // From here on, numbers are not rows (KeyIndex::kFurther, kAbsent).
  static constexpr uint32_t kRowsMax = ~0u - 1;

  // REQUIRES: `row_bytes` is a multiple of 4, above 0.
  explicit RowSlabs(uint32_t row_bytes);

  // Returns the number of a new row, whose content is undefined.
  uint32_t Add();
  // The number will be used again.
  void Remove(uint32_t number);
  void Clear();

  // REQUIRES: `number` is that of a row.
  std::byte* row(uint32_t number) { return slabs_[number >> shift_].data() + OffsetOf(number); }
  const std::byte* row(uint32_t number) const {
    return slabs_[number >> shift_].data() + OffsetOf(number);
  }
  RowHeader& header(uint32_t number) {
    std::byte* const slab = slabs_[number >> shift_].data();
    std::byte* const first = slab + GroupOf(number) * group_bytes_ + headers_at_;
    return *reinterpret_cast<RowHeader*>(first + number % kGroup * header_stride_);
  }
  const RowHeader& header(uint32_t number) const {
    return const_cast<RowSlabs*>(this)->header(number);
  }

  uint32_t count() const { return places_ - free_; }
  uint32_t free() const { return free_; }
  // Memory that is or was in use: the rows, their headers, and free rows among them.
  uint64_t bytes() const { return places_ * (row_bytes_ + sizeof(RowHeader)); }

 private:
  static constexpr uint32_t kGroup = 16;

  uint64_t GroupOf(uint32_t number) const { return (number & mask_) / kGroup; }
  uint64_t OffsetOf(uint32_t number) const {
    return GroupOf(number) * group_bytes_ + number % kGroup * row_stride_;
  }

  const uint64_t row_bytes_;
  const bool together_;  // Each header is right behind its row.
  const uint64_t row_stride_;
  const uint64_t header_stride_;
  const uint64_t headers_at_;  // Offset of a group's first header.
  const uint64_t group_bytes_;
  const uint32_t shift_;  // A slab holds 2^shift_ rows, in whole groups.
  const uint32_t mask_;
  std::vector<PageMemory> slabs_;
  uint32_t places_ = 0;
  uint32_t free_ = 0;
  uint32_t first_free_ = 0;  // The first four bytes of a free row hold the number of the next one.
};

}  // namespace dt::server
