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

// The rows of one block of text, in their final form, except that positions in the heap count from
// the start of this block's heap. Used by one thread at a time; memory is kept between uses.
class Block {
 public:
  // `expected_rows` only sizes memory.
  void Clear(const RowLayout& layout, uint64_t expected_rows);

  // To add a row: Start, then a Put per column, ragged ones in their order, then Keep or Drop.
  void Start();
  void PutFloat(size_t column, float value);
  // False if the column has another length.
  bool PutFloatsAt(std::byte* record, size_t column, std::span<const float> values);
  // False if a fixed column has another length. A ragged column is cut to its last max_len keys.
  // `weights` is read only for weighted columns.
  bool PutKeys(size_t column, std::span<const Key> keys, std::span<const float> weights) {
    return PutKeysAt(Row(), column, keys, weights);
  }
  bool PutKey(size_t column, Key key) { return PutKeys(column, {&key, 1}, {}); }
  std::byte* OpenRecord() { return Row(); }
  void Keep() { ++rows_; }
  void Drop();

  // To add many rows, column by column: StartRows, whose records the caller fills but for ragged
  // columns; then, row by row in their order, StartLists and a PutKeysAt per ragged column, or
  // DropLists for a row that is not kept; then KeepRows.
  // Returns the first of `count` new records of layout.record_bytes() each, filled with zeros.
  std::byte* StartRows(uint64_t count);
  void StartLists(std::byte* record);
  bool PutKeysAt(std::byte* record, size_t column, std::span<const Key> keys,
                 std::span<const float> weights);
  void DropLists() { heap_.resize(heap_start_); }
  // Keeps row i of the last keep.size() rows if keep[i] is true.
  void KeepRows(std::span<const bool> keep);

  uint64_t rows() const { return rows_; }
  std::span<const std::byte> records() const { return {records_.data(), records_.size()}; }
  std::span<const uint64_t> heap() const { return heap_; }
  // Adds `words` to every row's position in the heap.
  void MoveHeap(uint64_t words);

 private:
  void PutRagged(std::byte* record, size_t column, std::span<const Key> keys,
                 std::span<const float> weights);
  std::byte* Row() { return records_.data() + records_.size() - layout_->record_bytes(); }

  const RowLayout* layout_ = nullptr;
  std::vector<std::byte> records_;
  std::vector<uint64_t> heap_;
  uint64_t rows_ = 0;
  uint64_t heap_start_ = 0;  // Where the words of the open row begin.
};

}  // namespace dt::worker
