// Matrix products by cuBLASLt. Row-major and densely packed: C [m, n] = op(A) [m, k] · op(B) [k,
// n].
#pragma once

#include "ops/cuda/util.cuh"

namespace dt {

// Arithmetic of products of floats: fp32, or TF32 with operands cut to 10 bits of fraction (Tensor
// Cores).
enum class GemmMath : uint8_t { kFp32, kTf32 };

struct GemmTask {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // Stored as A [k, m], B [n, k].
  int64_t batch = 1;  // Number of products, whose matrices are stored one behind the other.
  uint8_t in_type = kCudaF32, out_type = kCudaF32;
  GemmMath math = GemmMath::kFp32;
  bool adds = false;  // C += instead of C =.
  bool relu = false;  // Applied after the bias. REQUIRES: a bias.

  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;  // [n], of type out_type; nullptr if there is none.
};

// Uses the algorithm that cuBLASLt names first for the shape, so equal shapes give equal bits on a
// card; each thread remembers it. Sizes may be 0.
CudaError Gemm(CudaStream& stream, const GemmTask& task);

}  // namespace dt
