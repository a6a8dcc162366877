// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011): four 32-bit numbers as a pure function of (counter, key). It has no state, so
// a value does not depend on who draws it, when, or in which order.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "common/base/ids.h"

namespace dt {

using PhiloxBlock = std::array<uint32_t, 4>;

// `key` selects the stream, (high, low) the position in it.
inline PhiloxBlock Philox(uint64_t key, uint64_t high, uint64_t low) {
  uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
  uint32_t c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

// Uniform in [0, 1), with 24 random bits.
inline float ToUniform(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1.0p-24f; }

// The key of the stream for a purpose ("shuffle", "dropout", …) under the job's seed.
uint64_t StreamKey(uint64_t seed, uint64_t purpose, uint64_t a = 0, uint64_t b = 0);

// Fills `out` with the standard normal values of `row` in the stream, from value `begin` on.
// Box-Muller in float64.
void FillNormal(uint64_t stream, uint64_t row, std::span<float> out, uint64_t begin = 0);
// Fills `out` with the values of `row` in the stream, uniform in [-1, 1), from value `begin` on.
void FillUniform(uint64_t stream, uint64_t row, std::span<float> out, uint64_t begin = 0);

}  // namespace dt
