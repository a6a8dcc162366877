// Powers of numbers by whole exponents.
#pragma once

#include <cstdint>

namespace dt {

// Uses multiplications alone, so that every processor computes the same bits.
constexpr double Power(double base, uint64_t exponent) {
  double power = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if (exponent & 1) power *= base;
  }
  return power;
}

}  // namespace dt
