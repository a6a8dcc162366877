// Helpers of the CPU kernels: dispatch by element type, pieces of work, sums in a fixed order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

#include "ops/kernel.h"
#include "ops/row_sums.h"

namespace dt {

// Elements of one piece of work.
inline constexpr size_t kGrain = 16384;

// Calls body(T()) with T = float or double.
template <class Body>
void OnFloat(DType dtype, Body&& body) {
  if (dtype == DType::kF32) return body(float());
  DT_CHECK(dtype == DType::kF64);
  body(double());
}

template <class T>
T* DataOf(const TensorView& view) {
  return view.as<T>().data();
}

// Data of a value that is floats or bf16; the other pointer is nullptr.
template <class T>
struct Either {
  T* wide = nullptr;
  uint16_t* bf16 = nullptr;
  explicit Either(const TensorView& view) {
    if (view.dtype == DType::kBf16) bf16 = static_cast<uint16_t*>(view.data);
    if (view.dtype != DType::kBf16) wide = DataOf<T>(view);
  }
};

// `count` elements of the scratch memory; invalidates earlier spans of it.
template <class T>
std::span<T> Scratch(KernelContext& context, size_t count) {
  if (context.scratch.size() < count * sizeof(T)) context.scratch.resize(count * sizeof(T));
  return {reinterpret_cast<T*>(context.scratch.data()), count};
}

// Rows and row length of a tensor seen as the matrix [all but the last, last].
struct MatrixShape {
  size_t rows = 0, cols = 0;
};
inline MatrixShape AsMatrix(const TensorView& view) {
  DT_CHECK(!view.shape.empty());
  size_t rows = 1;
  for (size_t i = 0; i + 1 < view.shape.size(); ++i) rows *= static_cast<size_t>(view.shape[i]);
  return {rows, static_cast<size_t>(view.shape.back())};
}
// Rows and row length of a tensor seen as the matrix [first, all others].
inline MatrixShape AsSamples(const TensorView& view) {
  DT_CHECK(!view.shape.empty());
  size_t cols = 1;
  for (size_t i = 1; i < view.shape.size(); ++i) cols *= static_cast<size_t>(view.shape[i]);
  return {static_cast<size_t>(view.shape[0]), cols};
}

// Number of rows that make a piece of about kGrain elements.
inline size_t RowGrain(size_t cols) {
  return std::max<size_t>(1, kGrain / std::max<size_t>(1, cols));
}

// Sums in eight lanes: a fixed order that the compiler can vectorise.
template <class T>
T DotOf(const T* __restrict a, const T* __restrict b, size_t n) {
  T lanes[8] = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t k = 0; k < 8; ++k) lanes[k] += a[i + k] * b[i + k];
  }
  for (size_t k = 0; i < n; ++i, ++k) lanes[k] += a[i] * b[i];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}
template <class T>
T SumOf(const T* __restrict a, size_t n) {
  T lanes[8] = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t k = 0; k < 8; ++k) lanes[k] += a[i + k];
  }
  for (size_t k = 0; i < n; ++i, ++k) lanes[k] += a[i];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// The maximum, in eight lanes so that the compiler can vectorise it. NaNs are ignored.
template <class T>
T MaxOf(const T* __restrict x, size_t n) {
  T lanes[8];
  std::fill_n(lanes, 8, -std::numeric_limits<T>::infinity());
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t k = 0; k < 8; ++k) lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
  }
  for (size_t k = 0; i < n; ++i, ++k) lanes[k] = x[i] > lanes[k] ? x[i] : lanes[k];
  for (size_t half = 4; half > 0; half /= 2) {
    for (size_t k = 0; k < half; ++k) lanes[k] = std::max(lanes[k], lanes[k + half]);
  }
  return lanes[0];
}

// out += factor · x
template <class T>
void AddScaled(T factor, const T* __restrict x, T* __restrict out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] += factor * x[i];
}
template <class T>
void AddTo(const T* __restrict x, T* __restrict out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] += x[i];
}

// Copies input 0 to output 0, whatever their shapes, if they are not in the same memory.
inline void CopyBytes(KernelContext& context) {
  const auto* from = static_cast<const std::byte*>(context.in(0).data);
  auto* to = static_cast<std::byte*>(context.out(0).data);
  if (from == to) return;
  context.pool.ParallelFor(context.out(0).bytes(), 4 * kGrain, [&](size_t begin, size_t end) {
    std::memcpy(to + begin, from + begin, end - begin);
  });
}

// Sums over rows: body(begin, end, partial) adds rows [begin, end) to the `cols` values of
// `partial`, which are zero before. Uses all of the scratch memory; the result is in it.
template <class T, class Body>
std::span<const T> SumOverRows(KernelContext& context, size_t rows, size_t cols, Body&& body) {
  const std::span<T> all = Scratch<T>(context, (RowSums<T>::Pieces(rows) + 1) * cols);
  const RowSums<T> sums{all.data() + cols, rows, cols};
  context.pool.ParallelFor(rows, kSumRows, [&](size_t begin, size_t end) {
    T* const partial = sums.PieceOf(begin);
    std::fill_n(partial, cols, T(0));
    body(begin, end, partial);
  });
  sums.AddUp(all.data());
  return all.first(cols);
}

}  // namespace dt
