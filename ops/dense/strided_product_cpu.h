// Products of matrices that lie anyhow, by what oneDNN compiles for their shapes; and rounding to
// bf16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dt {

enum class FactorType : uint8_t { kFp32, kBf16 };

// One product on one thread: C [m, n] = A [m, k] · B [k, n]; sums are float.
struct StridedProduct {
  FactorType type = FactorType::kFp32;  // Of A and B.
  size_t m = 0, n = 0, k = 0;
  size_t a_row = 0, a_col = 0, b_row = 0, b_col = 0;  // Elements from one row, column to the next.
  size_t c_row = 0;
  friend auto operator<=>(const StridedProduct&, const StridedProduct&) = default;
};
struct StridedOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  float* c = nullptr;
};
// REQUIRES: MultipliesBf16() if they are bf16. Any thread; each keeps what oneDNN has made for the
// shapes it met.
void Multiply(const StridedProduct& product, const StridedOperands& data);

// Whether this processor multiplies bf16 itself. Without, the same products are made of floats
// that bf16 holds.
bool MultipliesBf16();
// To the nearest, ties to even; less than 2^-126 becomes zero. REQUIRES: MultipliesBf16().
void RoundToBf16(std::span<const float> from, uint16_t* to);

}  // namespace dt
