// Functions of one element that the compiler can vectorise, unlike the library's. Kernels are
// compiled with -fno-trapping-math, because otherwise selections become branches.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace dt {

// e^x within 2 units in the last place, for x in [-87, 88]. Outside it returns the value at the
// nearer end, and NaN for NaN. x = n ln 2 + r with |r| ≤ ln 2 / 2 (ln 2 in two parts: Cody and
// Waite, 1980); e^r is its Taylor polynomial, whose next term is below 2^-26 of it.
inline float FastExp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  // Adding it to a float leaves the rounded number in the low bits.
  constexpr float kRound = 0x1.8p23f;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // Computes 2^n by setting the exponent field.
  const uint32_t bits = (std::bit_cast<uint32_t>(shifted) + 127u) << 23;
  return p * std::bit_cast<float>(bits);
}
// Exact, for gradient checks.
inline double FastExp(double x) { return std::exp(x); }

// The normal distribution: its cumulative probability Φ(x) and its density at x.
template <class T>
struct Normal {
  T cdf, density;
};
// Φ within 2e-7: Abramowitz and Stegun, "Handbook of mathematical functions", 7.1.26.
inline Normal<float> FastNormal(float x) {
  const float z = std::fabs(x) * 0.707106781f;
  const float power = FastExp(-z * z);
  const float t = 1.0f / (1.0f + 0.3275911f * z);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const float tail = 0.5f * p * t * power;
  const float rest = 1.0f - tail;
  return {x > 0 ? rest : tail, 0.398942280f * power};
}
inline Normal<double> FastNormal(double x) {
  return {0.5 * std::erfc(-x * 0.70710678118654752), 0.39894228040143268 * std::exp(-0.5 * x * x)};
}

}  // namespace dt
