// The elements that dropout zeroes, on the CPU: see ops/norm/dropout.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/hash.h"
#include "common/base/philox.h"
#include "ops/kernel.h"
#include "ops/norm/dropout_stream.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace dt {

struct DropoutMask {
  uint64_t key = 0;
  uint32_t below = 0;  // Elements whose bits are below it are zeroed.
  double scale = 1;    // The others are multiplied by it.
};
// The mask of the node `name`. REQUIRES: 0 <= rate < 1.
inline DropoutMask MaskOf(const RunInfo& run, std::string_view name, double rate) {
  return {StreamKey(run.seed, kDropoutPurpose, run.step, HashString(name)),
          static_cast<uint32_t>(rate * 0x1.0p32), 1 / (1 - rate)};
}

// 16 consecutive elements of a sample use four Philox blocks: element p uses word 2 (p / 8) + p % 2
// of block (p % 8) / 2. Four blocks side by side in vector registers are cheapest to store in this
// order.
inline constexpr size_t kMaskPlaces = 16;
using MaskBits = std::array<uint32_t, kMaskPlaces>;

#if defined(__AVX2__)
// Four blocks at once, one in each 64-bit lane; until the end only the lower halves matter.
inline MaskBits DrawMaskBits(uint64_t key, uint64_t sample, uint64_t block) {
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
  const __m256i lows = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<int64_t>(block)),
                                        _mm256_set_epi64x(3, 2, 1, 0));
  __m256i c0 = lows, c1 = _mm256_srli_epi64(lows, 32);
  __m256i c2 = _mm256_set1_epi64x(static_cast<int64_t>(sample));
  __m256i c3 = _mm256_srli_epi64(c2, 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m256i p0 = _mm256_mul_epu32(m0, c0), p1 = _mm256_mul_epu32(m1, c2);
    const __m256i key0 = _mm256_set1_epi64x(k0), key1 = _mm256_set1_epi64x(k1);
    c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1), key0);
    c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3), key1);
    c1 = p1;
    c3 = p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  MaskBits bits;
  auto* to = reinterpret_cast<__m256i*>(bits.data());
  _mm256_storeu_si256(to, _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0xAA));
  _mm256_storeu_si256(to + 1, _mm256_blend_epi32(c2, _mm256_slli_epi64(c3, 32), 0xAA));
  return bits;
}
#else
inline MaskBits DrawMaskBits(uint64_t key, uint64_t sample, uint64_t block) {
  MaskBits bits;
  for (size_t b = 0; b < 4; ++b) {
    const PhiloxBlock words = Philox(key, sample, block + b);
    for (size_t w = 0; w < 4; ++w) bits[8 * (w / 2) + 2 * b + w % 2] = words[w];
  }
  return bits;
}
#endif

// Multiplies by 0 or the scale, since a branch would often be mispredicted. `x` may be `to`.
template <class T, size_t extent>
void MaskPlaces(const DropoutMask& mask, const MaskBits& bits, const T* x,
                std::span<T, extent> to) {
  const T scale = static_cast<T>(mask.scale);
  T values[kMaskPlaces];
  for (size_t k = 0; k < kMaskPlaces; ++k) values[k] = bits[k] < mask.below ? T(0) : scale;
  for (size_t k = 0; k < to.size(); ++k) values[k] *= x[k];
  for (size_t k = 0; k < to.size(); ++k) to[k] = values[k];
}

// `to` becomes all elements of the sample `x`, masked. `x` may be `to`.
template <class T>
void MaskSample(const DropoutMask& mask, uint64_t sample, const T* x, std::span<T> to) {
  size_t i = 0;
  for (; i + kMaskPlaces <= to.size(); i += kMaskPlaces) {
    const MaskBits bits = DrawMaskBits(mask.key, sample, i / 4);
    MaskPlaces(mask, bits, x + i, std::span<T, kMaskPlaces>(to.subspan(i, kMaskPlaces)));
  }
  if (i == to.size()) return;
  MaskPlaces(mask, DrawMaskBits(mask.key, sample, i / 4), x + i, to.subspan(i));
}

}  // namespace dt
