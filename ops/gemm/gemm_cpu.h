// Matrix products. Row-major and densely packed: C [m, n] = op(A) [m, k] · op(B) [k, n].
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "common/base/float_formats.h"
#include "common/graph/graph.h"
#include "common/runtime/task_pool.h"
#include "ops/row_sums.h"

namespace dt {

// With kBf16 operands are rounded to bf16, and sums are float.
enum class GemmMath : uint8_t { kFp32, kBf16 };

struct GemmShape {
  size_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // Stored as A [k, m], B [n, k].
};

// Whether the gradient passes a ReLU; x is the ReLU's result, a float or bf16.
template <class T>
bool IsAbove0(T x) {
  return x > T(0);
}
inline bool IsAbove0(uint16_t bf16) { return FromBf16(bf16) > 0.0f; }

// Operations on each element of C after its sum is done, in this order, while it is in cache.
// REQUIRES: A is not transposed.
template <class T>
struct GemmEpilogue {
  const T* bias = nullptr;  // [n], added to every row.
  bool relu = false;        // Elements that are not above 0 become 0.
  // [m, n], at most one of the two: C becomes 0 where this is not above 0, as in a ReLU's gradient.
  const T* above0 = nullptr;
  const uint16_t* bf16_above0 = nullptr;
  T scale = T(1);              // With one of these, multiplies what is kept.
  RowSums<T> sums;             // The parts receive the sums of C's rows; the caller calls AddUp.
  uint16_t* bf16_c = nullptr;  // [m, n]: receives C rounded to bf16.

  bool any() const {
    return bias != nullptr || relu || above0 != nullptr || bf16_above0 != nullptr ||
           sums.parts != nullptr || bf16_c != nullptr;
  }
};

template <class T>
struct GemmTask {
  GemmShape shape = {};
  const T* a = nullptr;
  const T* b = nullptr;
  T* c = nullptr;  // nullptr if only the results of the epilogue are wanted.
  GemmMath math = GemmMath::kFp32;
  const uint16_t* bf16_a = nullptr;  // kBf16: used instead of a and b for operands stored in bf16.
  const uint16_t* bf16_b = nullptr;
  GemmEpilogue<T> epilogue = {};
  // The number of rows varies from call to call, so nothing should be compiled for it.
  bool rows_vary = false;
  std::byte* workspace = nullptr;  // Set by UseMath. Required for kBf16, optional otherwise.
};

// Gives a task of floats the arithmetic of its node's attribute `math`, and working memory in the
// node's scratch memory. Returns the address there of `more` bytes for the caller. Tasks of double,
// used in gradient checks, keep their arithmetic. REQUIRES: the task's shape and bf16_c are set.
std::byte* UseMath(const Attrs& attrs, GemmTask<float>& task, std::vector<std::byte>& scratch,
                   size_t more);
std::byte* UseMath(const Attrs& attrs, GemmTask<double>& task, std::vector<std::byte>& scratch,
                   size_t more);

// Computes C in tiles: from packed panels, or, for bf16 on a processor with AMX, with kernels that
// oneDNN compiles for a tile. These are kept, so that products of known shapes allocate nothing.
// Results depend on the shape alone, not on the number of threads. REQUIRES: c, or an epilogue with
// bf16_c or sums; with rows_vary at most one of A and B is transposed.
void Gemm(TaskPool& pool, const GemmTask<float>& task);
// Plain loops, for gradient checks. REQUIRES: c; no bf16.
void Gemm(TaskPool& pool, const GemmTask<double>& task);

// Rounds to the nearest bf16; a float below 2^-126 may become zero.
void StoreBf16(std::span<const float> from, uint16_t* to);

}  // namespace dt
