// Parsed rows before they are in the cache.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "worker/data/row_layout.h"

namespace dt::worker {

// The rows of one block of text, in their final form but for the place in the heap, which counts
// from the start of this block's heap. One thread at a time; memory is kept between uses.
class Block {
 public:
  // `expected_rows` sizes memory only.
  void Clear(const RowLayout& layout, uint64_t expected_rows);

  // One row: Start, then a Put per column, ragged ones in their order, then Keep or Drop.
  void Start();
  void PutFloat(size_t column, float value);
  // False if a fixed column has another length. A ragged column is cut to its last max_len keys.
  // `weights` is read only for weighted columns.
  bool PutKeys(size_t column, std::span<const Key> keys, std::span<const float> weights);
  bool PutKey(size_t column, Key key) { return PutKeys(column, {&key, 1}, {}); }
  // Of a column of one key that has been put.
  Key KeyAt(size_t column) const;
  void Keep() { ++rows_; }
  void Drop();

  uint64_t rows() const { return rows_; }
  std::span<const std::byte> records() const { return {records_.data(), records_.size()}; }
  std::span<const uint64_t> heap() const { return heap_; }
  // Adds `words` to every row's place in the heap.
  void MoveHeap(uint64_t words);

 private:
  void PutRagged(size_t column, std::span<const Key> keys, std::span<const float> weights);
  std::byte* Row() { return records_.data() + records_.size() - layout_->record_bytes(); }

  const RowLayout* layout_ = nullptr;
  std::vector<std::byte> records_;
  std::vector<uint64_t> heap_;
  uint64_t rows_ = 0;
  uint64_t heap_start_ = 0;  // Of the open row.
};

}  // namespace dt::worker
