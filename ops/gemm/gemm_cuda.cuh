// Matrix products by cuBLASLt. Row-major and densely packed: C [m, n] = op(A) [m, k] · op(B) [k,
// n].
#pragma once

#include "ops/cuda/util.cuh"

namespace dt {

// How products of floats are made: as they are; with operands cut to 10 bits of fraction (Tensor
// Cores).
enum class GemmMath : uint8_t { kFp32, kTf32 };

struct GemmTask {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // A lies as [k, m], B as [n, k].
  int64_t batch = 1;                              // As many products, one behind the other.
  uint8_t in_type = kCudaF32, out_type = kCudaF32;
  GemmMath math = GemmMath::kFp32;
  bool adds = false;  // C += instead of C =.
  bool relu = false;  // After the bias; only with one.

  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;  // [n], of out_type; nullptr: none.
};

// The algorithm is what cuBLASLt names first for the shape, so equal shapes give equal bits on a
// card; the thread remembers it. Safe with sizes of 0.
CudaError Gemm(CudaStream& stream, const GemmTask& task);

}  // namespace dt
