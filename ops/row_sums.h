// Sums over the rows of a matrix, in a fixed order.
#pragma once

#include <algorithm>
#include <cstddef>

namespace dt {

// Rows of one partial sum.
inline constexpr size_t kSumRows = 64;

// Memory of a sum over rows: the column sums of every kSumRows rows, which AddUp then adds in
// order, in float64.
template <class T>
struct RowSums {
  T* parts = nullptr;  // [pieces, cols]
  size_t rows = 0, cols = 0;

  static constexpr size_t Pieces(size_t rows) { return (rows + kSumRows - 1) / kSumRows; }
  static constexpr size_t Bytes(size_t rows, size_t cols) {
    return Pieces(rows) * cols * sizeof(T);
  }
  // The partial sums that row r is added to.
  T* PieceOf(size_t r) const { return parts + r / kSumRows * cols; }

  void AddUp(T* out) const {
    constexpr size_t kBlock = 64;
    for (size_t at = 0; at < cols; at += kBlock) {
      double sums[kBlock] = {};
      const size_t count = std::min(kBlock, cols - at);
      for (size_t p = 0; p < Pieces(rows); ++p) {
        const T* part = parts + p * cols + at;
        for (size_t c = 0; c < count; ++c) sums[c] += static_cast<double>(part[c]);
      }
      for (size_t c = 0; c < count; ++c) out[at + c] = static_cast<T>(sums[c]);
    }
  }
};

}  // namespace dt
