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

// kBf16: operands are rounded to bf16, sums are float.
enum class GemmMath : uint8_t { kFp32, kBf16 };

struct GemmShape {
  size_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // A lies as [k, m], B as [n, k].
};

// Where a ReLU's gradient passes: of its result, a float or bf16.
template <class T>
bool IsAbove0(T x) {
  return x > T(0);
}
inline bool IsAbove0(uint16_t bf16) { return FromBf16(bf16) > 0.0f; }

// What is made of each element of C when its sum is done, in this order, while it is near.
// REQUIRES: A does not lie turned.
template <class T>
struct GemmEpilogue {
  const T* bias = nullptr;  // [n], added to every row.
  bool relu = false;        // What is not above 0 becomes 0.
  // [m, n], one of the two: C becomes 0 where this is not above 0, as a ReLU's gradient does.
  const T* above0 = nullptr;
  const uint16_t* bf16_above0 = nullptr;
  RowSums<T> sums;             // Its parts become sums of C's rows; AddUp is the caller's.
  uint16_t* bf16_c = nullptr;  // [m, n]: C rounded to bf16.

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
  T* c = nullptr;  // nullptr: only what the epilogue makes is wanted.
  GemmMath math = GemmMath::kFp32;
  const uint16_t* bf16_a = nullptr;  // kBf16: instead of a and b, where they are stored so.
  const uint16_t* bf16_b = nullptr;
  GemmEpilogue<T> epilogue = {};
  bool rows_vary =
      false;  // From call to call, so that nothing should be compiled for their number.
  std::byte* room = nullptr;  // UseMath's: required for kBf16; others may do without.
};

// Gives a task of floats the arithmetic that the attribute `math` of its node asks for, and its
// room in the node's scratch memory. Gives where in it `more` bytes of the caller's begin. Gradient
// checks in double stay as they are. REQUIRES: the task's shape and bf16_c are set.
std::byte* UseMath(const Attrs& attrs, GemmTask<float>& task, std::vector<std::byte>& scratch,
                   size_t more);
std::byte* UseMath(const Attrs& attrs, GemmTask<double>& task, std::vector<std::byte>& scratch,
                   size_t more);

// By tiles of C: of packed panels where the processor has AVX-512 and multiplies the numbers, else
// (and with AMX in bf16) by what oneDNN compiles for a tile. That is kept, so that products take no
// memory once their shapes are known. Bits depend on the shape alone, not on the number of threads.
// REQUIRES: c, or an epilogue with bf16_c or sums; with rows_vary at most one of A and B lies
// turned.
void Gemm(TaskPool& pool, const GemmTask<float>& task);
// Plain loops, for gradient checks. REQUIRES: c; no bf16.
void Gemm(TaskPool& pool, const GemmTask<double>& task);

// As bf16, to the nearest; a float less than 2^-126 may become zero.
void StoreBf16(std::span<const float> from, uint16_t* to);

}  // namespace dt
