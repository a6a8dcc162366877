// Dropout with the bits of common/base/philox.h, so that every device drops the same elements.
#pragma once

#include "ops/cuda/util.cuh"
#include "ops/norm/dropout_stream.h"

namespace dt {

struct PhiloxWords {
  uint32_t words[4];
};
inline __device__ PhiloxWords Philox(uint64_t key, uint64_t high, uint64_t low) {
  auto c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
  auto c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint32_t high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
    const uint32_t high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

inline __device__ uint64_t MixBits(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  x ^= x >> 31;
  return x;
}
// Same as StreamKey of common/base/philox.h.
inline __device__ uint64_t StreamKey(uint64_t seed, uint64_t purpose, uint64_t a, uint64_t b) {
  return MixBits(MixBits(MixBits(MixBits(seed + 0x9e3779b97f4a7c15ull) ^ purpose) + a) ^
                 (b << 1 | 1));
}

// 16 consecutive elements of a sample use four blocks: element p uses word 2 (p / 8) + p % 2 of
// block (p % 8) / 2. So block b has the words of elements 2 b, 2 b + 1, 2 b + 8 and 2 b + 9.
template <class T>
struct Drop {
  uint64_t first_sample;  // Position in the slice.
  // Elements, and Philox blocks, of a sample; it takes four blocks for every 16 elements begun.
  int64_t width, blocks;
  uint64_t node;
  uint32_t below;  // Elements whose bits are below it are zeroed.
  float scale;
  const T* x;
  T* y;

  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const Division at = Divide(i, blocks);
    const int64_t first = at.rest / 4 * 16 + at.rest % 4 * 2;
    const uint64_t key = StreamKey(run.seed, kDropoutPurpose, run.step, node);
    const uint64_t sample = run.first_sample + first_sample + static_cast<uint64_t>(at.quotient);
    const PhiloxWords bits = Philox(key, sample, static_cast<uint64_t>(at.rest));
    for (int w = 0; w < 4; ++w) {
      const int64_t place = first + w / 2 * 8 + w % 2;
      if (place >= width) continue;
      const int64_t e = at.quotient * width + place;
      const float factor = bits.words[w] < below ? 0.0f : scale;
      y[e] = run.training != 0 ? To<T>(ToFloat(x[e]) * factor) : x[e];
    }
  }
};

inline int64_t DropBlocks(int64_t width) { return (width + 15) / 16 * 4; }

}  // namespace dt
