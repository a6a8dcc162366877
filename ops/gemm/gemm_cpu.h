// Matrix products. Row-major and densely packed: C [m, n] = op(A) [m, k] · op(B) [k, n].
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/graph/graph.h"
#include "common/runtime/task_pool.h"

namespace dt {

// kBf16: operands are rounded to bf16, sums are float.
enum class GemmMath : uint8_t { kFp32, kBf16 };

struct GemmShape {
  size_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // A lies as [k, m], B as [n, k].
};

template <class T>
struct GemmTask {
  GemmShape shape = {};
  const T* a = nullptr;
  const T* b = nullptr;
  T* c = nullptr;  // nullptr: `then` takes what it wants of each tile.
  GemmMath math = GemmMath::kFp32;
  const uint16_t* bf16_a = nullptr;  // kBf16: instead of a and b, where they are stored so.
  const uint16_t* bf16_b = nullptr;
  bool rows_vary =
      false;  // From call to call, so that nothing should be compiled for their number.
  std::byte* room = nullptr;  // UseMath's: required for kBf16; others may do without.
};

// A part of C that has just been computed, on the thread that did. Its first row is a multiple of
// kTileRows unless A lies turned.
inline constexpr size_t kTileRows = 64;
template <class T>
struct GemmTile {
  size_t row = 0, col = 0, rows = 0, cols = 0;
  T* values = nullptr;  // [rows, cols]

  T* row_of(size_t r) const { return values + r * cols; }
};
template <class T>
using GemmThen = absl::FunctionRef<void(const GemmTile<T>&)>;

// Gives a task of floats the arithmetic that the attribute `math` of its node asks for, and its
// room in the node's scratch memory. Gives where in it `more` bytes of the caller's begin. Gradient
// checks in double stay as they are.
std::byte* UseMath(const Attrs& attrs, GemmTask<float>& task, std::vector<std::byte>& scratch,
                   size_t more);
std::byte* UseMath(const Attrs& attrs, GemmTask<double>& task, std::vector<std::byte>& scratch,
                   size_t more);

// By tiles of C: of packed panels where the processor has AVX-512 and multiplies the numbers, else
// (and with AMX in bf16) by what oneDNN compiles for a tile. That is kept, so that products take no
// memory once their shapes are known. Bits depend on the shape alone, not on the number of threads.
// `then` is called once for each part of C, together for all of it. REQUIRES: `then` starts no work
// on a pool; with rows_vary at most one of A and B lies turned.
void Gemm(TaskPool& pool, const GemmTask<float>& task, GemmThen<float> then);
// Plain loops, for gradient checks. REQUIRES: c.
void Gemm(TaskPool& pool, const GemmTask<double>& task, GemmThen<double> then);
template <class T>
void Gemm(TaskPool& pool, const GemmTask<T>& task) {
  Gemm(pool, task, [](const GemmTile<T>&) {});
}

// As bf16, to the nearest; a float less than 2^-126 may become zero.
void StoreBf16(std::span<const float> from, uint16_t* to);

}  // namespace dt
