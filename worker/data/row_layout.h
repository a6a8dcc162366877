// How one sample is stored in the cache. A record has a fixed size, so a row is found by its
// number, and all its columns are side by side: reading a random row costs a few neighbouring cache
// lines, not one per column.
//
//   record: keys of fixed columns u64 … | position of the row's words in the heap u64 (only with a
//           ragged column) | floats, weights of fixed columns f32, lengths of ragged columns u32 …
//           | padding to 8 bytes
//   heap:   per row, per ragged column: keys u64 [count], weights f32 [count] padded to 8 bytes
#pragma once

#include <cstdint>
#include <vector>

#include "common/specs/column.h"

namespace dt::worker {

struct ColumnSlot {
  // Byte offset in the record: of the first float, the first key, or the count of a ragged column.
  uint32_t value = 0;
  uint32_t weights = 0;  // Byte offset of the first weight, for a fixed and weighted column.
};

// Immutable.
class RowLayout {
 public:
  explicit RowLayout(std::vector<ColumnSpec> columns);

  const std::vector<ColumnSpec>& columns() const { return columns_; }
  const ColumnSlot& slot(size_t column) const { return slots_[column]; }
  uint32_t record_bytes() const { return record_bytes_; }
  bool has_heap() const { return has_heap_; }
  uint32_t heap_slot() const { return heap_slot_; }  // Byte offset in the record.

  // Words of the heap that `count` keys of this column take.
  static uint64_t HeapWords(const ColumnSpec& column, uint64_t count) {
    return count + (column.weighted ? (count + 1) / 2 : 0);
  }

 private:
  std::vector<ColumnSpec> columns_;
  std::vector<ColumnSlot> slots_;
  uint32_t record_bytes_ = 0;
  uint32_t heap_slot_ = 0;
  bool has_heap_ = false;
};

}  // namespace dt::worker
