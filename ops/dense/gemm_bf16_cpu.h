// Products of bf16 with sums in float, by oneDNN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dt {

// One product on one thread: C [m, n] = A [m, k] · B [k, n].
struct Bf16Product {
  size_t m = 0, n = 0, k = 0;
  size_t a_row = 0, a_col = 0, b_row = 0, b_col = 0;  // Elements from one row, column to the next.
  size_t c_row = 0;
  friend auto operator<=>(const Bf16Product&, const Bf16Product&) = default;
};
struct Bf16Operands {
  const uint16_t* a = nullptr;
  const uint16_t* b = nullptr;
  float* c = nullptr;
};

// Whether this processor multiplies bf16 itself. Without, the same products are made of floats
// that bf16 holds.
bool MultipliesBf16();
// To the nearest, ties to even; less than 2^-126 becomes zero. REQUIRES: MultipliesBf16().
void RoundToBf16(std::span<const float> from, uint16_t* to);
// REQUIRES: MultipliesBf16(). Any thread; each keeps what oneDNN has made for the shapes it met.
void MultiplyBf16(const Bf16Product& product, const Bf16Operands& data);

}  // namespace dt
