// Products of dense matrices by kernels that oneDNN compiles for their shapes; rounding to bf16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dt {

enum class FactorType : uint8_t { kFp32, kBf16 };

// One product on one thread: C [m, n] = op(A) [m, k] · op(B) [k, n]; sums are float. All matrices
// are densely packed, because oneDNN would allocate memory at each call for others.
struct CompiledProduct {
  // Type of A and B; kFp32 is for comparisons (test/bench/products.cc).
  FactorType type = FactorType::kFp32;
  size_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // Stored as A [k, m], B [n, k].
  friend auto operator<=>(const CompiledProduct&, const CompiledProduct&) = default;
};
struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  float* c = nullptr;
};
// REQUIRES: MultipliesBf16() if the type is kBf16. Any thread; each keeps the kernels for the
// shapes it has met, and their working memory.
void Multiply(const CompiledProduct& product, const ProductOperands& data);

// Whether this processor has AVX-512 with BW and VL.
bool HasAvx512();
// Whether it also multiplies bf16 in hardware. Without this, the same products are computed with
// floats rounded to bf16.
bool MultipliesBf16();
// Whether it has AMX units, which multiply tiles of bf16 and are used by oneDNN.
bool HasTileUnits();
// Rounds to the nearest, ties to even; values below 2^-126 become zero. REQUIRES: MultipliesBf16().
void RoundToBf16(std::span<const float> from, uint16_t* to);

}  // namespace dt
