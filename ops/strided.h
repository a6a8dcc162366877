// Loops over tensors with any strides: broadcasting, reduction, transposition.
#pragma once

#include <array>
#include <span>

#include "ops/kernel_util.h"

namespace dt {

// Dimensions of a loop, outermost first, or for one operand the number of elements that a step
// along each dimension moves by (0: it stays). Missing dimensions on the left are 1.
inline constexpr size_t kLoopRank = 6;
using LoopDims = std::array<int64_t, kLoopRank>;

inline LoopDims RightAligned(std::span<const int64_t> shape) {
  DT_CHECK(shape.size() <= kLoopRank);
  LoopDims dims;
  dims.fill(1);
  std::copy(shape.begin(), shape.end(), dims.end() - static_cast<ptrdiff_t>(shape.size()));
  return dims;
}

// Strides of a dense tensor; 0 where its dimension is 1, so that it is repeated or summed into.
inline LoopDims StridesOf(const LoopDims& shape) {
  LoopDims strides;
  int64_t step = 1;
  for (size_t i = kLoopRank; i-- > 0;) {
    strides[i] = shape[i] == 1 ? 0 : step;
    step *= shape[i];
  }
  return strides;
}

struct Loop {
  LoopDims dims, a, b;

  // Moves the outermost dimension of a tensor of `rank` dimensions to the front, where work is
  // divided. Joins adjacent inner dimensions that both operands traverse with one stride, so that
  // the innermost loop is long.
  void Prepare(size_t rank) {
    const size_t first = kLoopRank - rank;
    for (LoopDims* each : {&dims, &a, &b}) std::swap((*each)[0], (*each)[first]);
    size_t at = kLoopRank - 1;
    for (size_t i = kLoopRank - 1; i-- > 1;) {
      if (dims[i] == 1) continue;
      if (dims[at] == 1) {
        Put(at, dims[i], i);
      } else if (a[i] == a[at] * dims[at] && b[i] == b[at] * dims[at]) {
        dims[at] *= dims[i];
      } else {
        Put(--at, dims[i], i);
      }
    }
    for (size_t i = 1; i < at; ++i) dims[i] = 1;
  }

  int64_t length() const { return dims[kLoopRank - 1]; }
  int64_t a_step() const { return a[kLoopRank - 1]; }
  int64_t b_step() const { return b[kLoopRank - 1]; }
  size_t outer_size() const { return static_cast<size_t>(dims[0]); }
  size_t inner_size() const {
    size_t size = 1;
    for (size_t i = 1; i < kLoopRank; ++i) size *= static_cast<size_t>(dims[i]);
    return size;
  }

  // Calls row(offset in a, offset in b, running offset) for each innermost row at the outermost
  // index `outer`, in row-major order. The running offset starts at 0.
  template <class Row>
  void EachRow(int64_t outer, Row&& row) const {
    if (inner_size() == 0) return;
    std::array<int64_t, kLoopRank> index{};
    int64_t at_a = outer * a[0], at_b = outer * b[0];
    for (int64_t at = 0;; at += length()) {
      row(at_a, at_b, at);
      size_t d = kLoopRank - 2;
      for (; d > 0; --d) {
        at_a += a[d], at_b += b[d];
        if (++index[d] < dims[d]) break;
        at_a -= a[d] * dims[d], at_b -= b[d] * dims[d];
        index[d] = 0;
      }
      if (d == 0) return;
    }
  }

 private:
  void Put(size_t to, int64_t size, size_t from) {
    dims[to] = size;
    a[to] = a[from];
    b[to] = b[from];
  }
};

}  // namespace dt
