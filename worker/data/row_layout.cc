#include "worker/data/row_layout.h"

namespace dt::worker {

RowLayout::RowLayout(std::vector<ColumnSpec> columns) : columns_(std::move(columns)) {
  slots_.resize(columns_.size());
  uint32_t at = 0;
  const auto take = [&at](uint32_t bytes) {
    at += bytes;
    return at - bytes;
  };
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].is_ragged()) has_heap_ = true;
    if (columns_[c].is_keys() && !columns_[c].is_ragged()) {
      slots_[c].value = take(8 * columns_[c].length);
    }
  }
  if (has_heap_) heap_slot_ = take(8);
  for (size_t c = 0; c < columns_.size(); ++c) {
    const ColumnSpec& column = columns_[c];
    if (!column.is_keys() || column.is_ragged()) {
      slots_[c].value = take(column.is_keys() ? 4 : 4 * column.length);
    } else if (column.weighted) {
      slots_[c].weights = take(4 * column.length);
    }
  }
  record_bytes_ = (at + 7) / 8 * 8;
}

}  // namespace dt::worker
