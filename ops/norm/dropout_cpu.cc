#include <array>

#include "common/base/hash.h"
#include "common/base/philox.h"
#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/norm/dropout_stream.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace dt {
namespace {

// 16 consecutive elements of a sample use four Philox blocks: element p uses word 2 (p / 8) + p % 2
// of block (p % 8) / 2. Four blocks side by side in vector registers are cheapest to store in this
// order.
constexpr size_t kPlaces = 16;
using Bits = std::array<uint32_t, kPlaces>;

#if defined(__AVX2__)
// Four blocks at once, one in each 64-bit lane; until the end only the lower halves matter.
Bits DrawBits(uint64_t key, uint64_t sample, uint64_t block) {
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
  Bits bits;
  auto* to = reinterpret_cast<__m256i*>(bits.data());
  _mm256_storeu_si256(to, _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0xAA));
  _mm256_storeu_si256(to + 1, _mm256_blend_epi32(c2, _mm256_slli_epi64(c3, 32), 0xAA));
  return bits;
}
#else
Bits DrawBits(uint64_t key, uint64_t sample, uint64_t block) {
  Bits bits;
  for (size_t b = 0; b < 4; ++b) {
    const PhiloxBlock words = Philox(key, sample, block + b);
    for (size_t w = 0; w < 4; ++w) bits[8 * (w / 2) + 2 * b + w % 2] = words[w];
  }
  return bits;
}
#endif

struct Mask {
  uint64_t key;
  uint32_t below;  // Elements whose bits are below it are zeroed.
  double scale;
};

Mask MaskOf(const KernelContext& context) {
  const Attrs& attrs = context.node.attrs;
  const double rate = FloatAttr(attrs, "rate", 0.5);
  const auto of = attrs.find("mask_of");
  const uint64_t node =
      HashString(of == attrs.end() ? context.node.name : std::get<std::string>(of->second));
  return {StreamKey(context.run.seed, kDropoutPurpose, context.run.step, node),
          static_cast<uint32_t>(rate * 0x1.0p32), 1 / (1 - rate)};
}

// Multiplies by 0 or `scale`, since a branch would often be mispredicted.
template <class T>
void Apply(const Bits& bits, uint32_t below, T scale, const T* __restrict x, std::span<T> to) {
  T factors[kPlaces];
  for (size_t k = 0; k < kPlaces; ++k) factors[k] = bits[k] < below ? T(0) : scale;
  T* __restrict out = to.data();
  for (size_t k = 0; k < to.size(); ++k) out[k] = x[k] * factors[k];
}

template <class T>
void OneRow(const Mask& mask, uint64_t sample, const T* x, std::span<T> row) {
  const T scale = static_cast<T>(mask.scale);
  size_t i = 0;
  for (; i + kPlaces <= row.size(); i += kPlaces) {
    const Bits bits = DrawBits(mask.key, sample, i / 4);
    Apply<T>(bits, mask.below, scale, x + i, std::span<T, kPlaces>(row.subspan(i, kPlaces)));
  }
  if (i == row.size()) return;
  Apply<T>(DrawBits(mask.key, sample, i / 4), mask.below, scale, x + i, row.subspan(i));
}

// A run of elements that begins anywhere in its sample.
template <class T>
void OneRun(const Mask& mask, uint64_t sample, size_t begin, const T* x, std::span<T> to) {
  const T scale = static_cast<T>(mask.scale);
  for (size_t i = 0; i < to.size();) {
    const size_t at = begin + i, skipped = at % kPlaces;
    const size_t count = std::min(kPlaces - skipped, to.size() - i);
    const Bits bits = DrawBits(mask.key, sample, (at - skipped) / 4);
    for (size_t k = 0; k < count; ++k) {
      to[i + k] = x[i + k] * (bits[skipped + k] < mask.below ? T(0) : scale);
    }
    i += count;
  }
}

// A part of the elements of each sample, as the attributes `first` and `whole` say.
template <class T>
void OnePart(KernelContext& context) {
  const Shape& shape = context.in(0).shape;
  const std::vector<int64_t> first = IntsAttr(context.node.attrs, "first");
  const std::vector<int64_t> whole = IntsAttr(context.node.attrs, "whole");
  const Mask mask = MaskOf(context);
  const auto length = static_cast<size_t>(shape.back());
  const T* x = DataOf<T>(context.in(0));
  T* out = DataOf<T>(context.out(0));
  const size_t runs = length == 0 ? 0 : static_cast<size_t>(context.in(0).size()) / length;
  context.pool.ParallelFor(runs, RowGrain(length), [&](size_t from, size_t end) {
    for (size_t r = from; r < end; ++r) {
      // The position of the run in its sample, the last dimension fastest.
      size_t rest = r, begin = static_cast<size_t>(first.back()), stride = 1;
      for (size_t d = shape.size() - 1; d-- > 1;) {
        stride *= static_cast<size_t>(whole[d + 1]);
        begin += (static_cast<size_t>(first[d]) + rest % static_cast<size_t>(shape[d])) * stride;
        rest /= static_cast<size_t>(shape[d]);
      }
      OneRun<T>(mask, context.run.first_sample + rest, begin, x + r * length,
                {out + r * length, length});
    }
  });
}

// The gradient multiplies by the same mask.
void Dropout(KernelContext& context) {
  if (!context.run.training) return CopyBytes(context);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    if (!IntsAttr(context.node.attrs, "first").empty()) return OnePart<T>(context);
    const MatrixShape shape = AsSamples(context.in(0));
    const Mask mask = MaskOf(context);
    const T* x = DataOf<T>(context.in(0));
    T* out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const size_t at = r * shape.cols;
        OneRow<T>(mask, context.run.first_sample + r, x + at, {out + at, shape.cols});
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"dropout", Dropout},
    {"dropout_grad", Dropout},
};

}  // namespace

std::span<const NamedKernel> DropoutKernels() { return kKernels; }

}  // namespace dt
