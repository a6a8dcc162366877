// Copies samples out of rows that are stored as row_layout.h says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/data/batch.h"
#include "worker/data/row_layout.h"

namespace dt::worker {

// Empties the columns of a batch, and makes room for this many samples in those that are no lists.
void ClearColumns(size_t samples, std::span<const ColumnSpec> columns, Batch& batch);

// Immutable, any thread; what it is made of outlives it.
class RowsView {
 public:
  RowsView(const RowLayout& layout, const std::byte* records, const uint64_t* heap, uint64_t rows);

  // Fills the layout's columns of the batch, which are its first ones, with these rows.
  // REQUIRES: ClearColumns has made room for them; each row is below `rows`.
  void Gather(std::span<const uint64_t> rows, Batch& batch) const;

 private:
  const std::byte* Record(uint64_t row) const { return records_ + row * layout_.record_bytes(); }
  void Prefetch(std::span<const uint64_t> rows) const;
  // Copies one column of `rows`, which are samples first, first + 1, … of the batch.
  void GatherFixed(size_t column, std::span<const uint64_t> rows, size_t first,
                   BatchColumn& out) const;
  void GatherRagged(std::span<const uint64_t> rows, Batch& batch) const;

  const RowLayout& layout_;
  const std::byte* const records_;
  const uint64_t* const heap_;
  const uint64_t rows_;
  std::vector<size_t> ragged_;  // Indices of ragged columns.
};

}  // namespace dt::worker
