// Products of dense matrices by what oneDNN compiles for their shapes; and rounding to bf16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dt {

enum class FactorType : uint8_t { kFp32, kBf16 };

// One product on one thread: C [m, n] = op(A) [m, k] · op(B) [k, n]; sums are float. All matrices
// are densely packed: of others oneDNN's way is another one, which takes memory at each call.
struct CompiledProduct {
  FactorType type = FactorType::kFp32;  // Of A and B.
  size_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // A lies as [k, m], B as [n, k].
  friend auto operator<=>(const CompiledProduct&, const CompiledProduct&) = default;
};
struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  float* c = nullptr;
};
// REQUIRES: MultipliesBf16() if they are bf16. Any thread; each keeps what oneDNN has made for the
// shapes it met, and the memory that it works in.
void Multiply(const CompiledProduct& product, const ProductOperands& data);

// Whether this processor has AVX-512, with BW and VL.
bool HasAvx512();
// Whether it has that and multiplies bf16 itself. Without, the same products are made of floats
// that bf16 holds.
bool MultipliesBf16();
// Whether it has units that multiply tiles of bf16 (AMX), which oneDNN uses.
bool HasTileUnits();
// To the nearest, ties to even; less than 2^-126 becomes zero. REQUIRES: MultipliesBf16().
void RoundToBf16(std::span<const float> from, uint16_t* to);

}  // namespace dt
