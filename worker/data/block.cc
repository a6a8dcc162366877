#include "worker/data/block.h"

#include <algorithm>

namespace dt::worker {

void Block::Clear(const RowLayout& layout, uint64_t expected_rows) {
  layout_ = &layout;
  records_.clear();
  records_.reserve((expected_rows + 1) * layout.record_bytes());
  heap_.clear();
  rows_ = 0;
}

void Block::Start() { StartLists(StartRows(1)); }

std::byte* Block::StartRows(uint64_t count) {
  const size_t at = records_.size();
  records_.resize(at + count * layout_->record_bytes());
  return records_.data() + at;
}

void Block::StartLists(std::byte* record) {
  heap_start_ = heap_.size();
  if (layout_->has_heap()) {
    std::memcpy(record + layout_->heap_slot(), &heap_start_, sizeof heap_start_);
  }
}

void Block::PutFloat(size_t column, float value) {
  std::memcpy(Row() + layout_->slot(column).value, &value, sizeof value);
}

bool Block::PutFloatsAt(std::byte* record, size_t column, std::span<const float> values) {
  if (values.size() != layout_->columns()[column].length) return false;
  std::memcpy(record + layout_->slot(column).value, values.data(), values.size_bytes());
  return true;
}

bool Block::PutKeysAt(std::byte* record, size_t column, std::span<const Key> keys,
                      std::span<const float> weights) {
  const ColumnSpec& spec = layout_->columns()[column];
  if (spec.is_ragged()) {
    PutRagged(record, column, keys, weights);
    return true;
  }
  if (keys.size() != spec.length) return false;
  const ColumnSlot& slot = layout_->slot(column);
  std::memcpy(record + slot.value, keys.data(), keys.size_bytes());
  if (spec.weighted) std::memcpy(record + slot.weights, weights.data(), weights.size_bytes());
  return true;
}

void Block::PutRagged(std::byte* record, size_t column, std::span<const Key> keys,
                      std::span<const float> weights) {
  const ColumnSpec& spec = layout_->columns()[column];
  if (spec.max_len > 0 && keys.size() > spec.max_len) {
    keys = keys.last(spec.max_len);
    if (spec.weighted) weights = weights.last(spec.max_len);
  }
  const uint32_t count = static_cast<uint32_t>(keys.size());
  std::memcpy(record + layout_->slot(column).value, &count, sizeof count);
  heap_.insert(heap_.end(), keys.begin(), keys.end());
  if (!spec.weighted || count == 0) return;
  const size_t at = heap_.size();
  heap_.resize(at + (count + 1) / 2);
  std::memcpy(heap_.data() + at, weights.data(), weights.size_bytes());
}

void Block::Drop() {
  records_.resize(records_.size() - layout_->record_bytes());
  DropLists();
}

void Block::KeepRows(std::span<const bool> keep) {
  const size_t bytes = layout_->record_bytes();
  const std::byte* from = records_.data() + records_.size() - keep.size() * bytes;
  std::byte* to = records_.data() + records_.size() - keep.size() * bytes;
  for (const bool kept : keep) {
    if (kept && to != from) std::memcpy(to, from, bytes);
    if (kept) to += bytes;
    if (kept) ++rows_;
    from += bytes;
  }
  records_.resize(static_cast<size_t>(to - records_.data()));
}

void Block::MoveHeap(uint64_t words) {
  if (!layout_->has_heap() || words == 0) return;
  std::byte* at = records_.data() + layout_->heap_slot();
  for (uint64_t row = 0; row < rows_; ++row, at += layout_->record_bytes()) {
    uint64_t place;
    std::memcpy(&place, at, sizeof place);
    place += words;
    std::memcpy(at, &place, sizeof place);
  }
}

}  // namespace dt::worker
