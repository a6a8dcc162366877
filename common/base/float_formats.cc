#include "common/base/float_formats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "common/base/check.h"

namespace dt {
namespace {

constexpr float kFp16Max = 65504.0f;
// A row whose largest magnitude is below this is stored as zeros, because its scale would be too
// small.
constexpr float kInt8Least = 1e-36f;

uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t quiet = bits >> 16 | 0x40;  // A NaN stays one.
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

void EncodeBf16(std::span<const float> values, std::byte* out) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = ToBf16(values[i]);
    std::memcpy(out + 2 * i, &bits, 2);
  }
}

void DecodeBf16(const std::byte* in, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, in + 2 * i, 2);
    values[i] = FromBf16(bits);
  }
}

#ifdef __F16C__

// Converts eight values. EncodeFp16 copies a shorter rest into a buffer of eight, so that all
// values go through the same arithmetic.
__m128i ToFp16(__m256 values) {
  const __m256 infinity = _mm256_set1_ps(std::numeric_limits<float>::infinity());
  const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), values);
  const __m256 finite = _mm256_cmp_ps(magnitude, infinity, _CMP_LT_OQ);
  const __m256 most = _mm256_set1_ps(kFp16Max), least = _mm256_set1_ps(-kFp16Max);
  const __m256 clamped = _mm256_max_ps(_mm256_min_ps(values, most), least);
  return _mm256_cvtps_ph(_mm256_blendv_ps(values, clamped, finite), _MM_FROUND_TO_NEAREST_INT);
}

void EncodeFp16(std::span<const float> values, std::byte* out) {
  size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i),
                     ToFp16(_mm256_loadu_ps(values.data() + i)));
  }
  if (i == values.size()) return;
  float rest[8] = {};
  std::copy(values.begin() + static_cast<std::ptrdiff_t>(i), values.end(), rest);
  const __m128i bits = ToFp16(_mm256_loadu_ps(rest));
  std::memcpy(out + 2 * i, &bits, 2 * (values.size() - i));
}

void DecodeFp16(const std::byte* in, std::span<float> values) {
  size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 2 * i));
    _mm256_storeu_ps(values.data() + i, _mm256_cvtph_ps(bits));
  }
  if (i == values.size()) return;
  __m128i bits = _mm_setzero_si128();
  std::memcpy(&bits, in + 2 * i, 2 * (values.size() - i));
  float rest[8];
  _mm256_storeu_ps(rest, _mm256_cvtph_ps(bits));
  std::copy_n(rest, values.size() - i, values.begin() + static_cast<std::ptrdiff_t>(i));
}

#else

uint16_t ToFp16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude == 0x7f800000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude >= 0x477fe000) return static_cast<uint16_t>(sign | 0x7bff);  // kFp16Max.
  if (magnitude < 0x38800000) {  // Below the smallest normal number: a multiple of 2^-24.
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

float FromFp16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} << 16 & 0x80000000;
  const uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t high = exponent == 0x1f ? 0x7f800000 : (exponent + 112) << 23;
  const uint32_t quiet = exponent == 0x1f && fraction != 0 ? 0x400000 : 0;
  return std::bit_cast<float>(sign | high | quiet | fraction << 13);
}

void EncodeFp16(std::span<const float> values, std::byte* out) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = ToFp16(values[i]);
    std::memcpy(out + 2 * i, &bits, 2);
  }
}

void DecodeFp16(const std::byte* in, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, in + 2 * i, 2);
    values[i] = FromFp16(bits);
  }
}

#endif

// The order of magnitudes is the order of their bits as integers, with infinity and NaN above all
// finite values.
uint32_t LargestMagnitude(std::span<const float> values) {
  uint32_t most = 0;
  for (const float v : values) most = std::max(most, std::bit_cast<uint32_t>(v) & 0x7fffffff);
  return most;
}

void EncodeInt8(std::span<const float> values, std::byte* out) {
  const float most = std::bit_cast<float>(LargestMagnitude(values));
  float scale = most / 127.0f, inverse = 127.0f / most;
  if (!std::isfinite(most)) scale = std::numeric_limits<float>::quiet_NaN();
  if (!std::isfinite(most) || most < kInt8Least) inverse = 0;
  if (most < kInt8Least) scale = 0;
  std::memcpy(out, &scale, 4);
  out += 4;
  if (inverse == 0) {
    std::memset(out, 0, values.size());
    return;
  }
  // Adding 1.5 · 2^23 leaves the nearest whole number in the lowest bits.
  constexpr float kRounder = 0x1.8p23f;
  for (size_t i = 0; i < values.size(); ++i) {
    out[i] = static_cast<std::byte>(std::bit_cast<uint32_t>(values[i] * inverse + kRounder));
  }
}

void DecodeInt8(const std::byte* in, std::span<float> values) {
  float scale;
  std::memcpy(&scale, in, 4);
  in += 4;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = scale * static_cast<float>(static_cast<int8_t>(in[i]));
  }
}

// The finaliser of MurmurHash3 (Appleby), a bijection of 32-bit integers. Compilers turn it into
// code for eight integers at a time.
uint32_t Mix32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6b;
  x ^= x >> 13;
  x *= 0xc2b2ae35;
  x ^= x >> 16;
  return x;
}

}  // namespace

const char* NameOf(FloatFormat format) {
  constexpr const char* kNames[] = {"fp32", "bf16", "fp16", "int8"};
  return kNames[static_cast<size_t>(format)];
}

void EncodeRow(FloatFormat format, std::span<const float> values, std::byte* out) {
  switch (format) {
    case FloatFormat::kFp32:
      std::memcpy(out, values.data(), values.size_bytes());
      return;
    case FloatFormat::kBf16:
      return EncodeBf16(values, out);
    case FloatFormat::kFp16:
      return EncodeFp16(values, out);
    case FloatFormat::kInt8:
      return EncodeInt8(values, out);
  }
  DT_UNREACHABLE();
}

void EncodeRows(FloatFormat format, size_t dim, std::span<const float> values, std::byte* out) {
  if (values.empty()) return;
  const size_t used = RowBytes(format, dim) * (values.size() / dim);
  std::fill_n(out + used, ((used + 3) & ~size_t{3}) - used, std::byte{0});
  // Only int8 has something per row: the scale. The other formats encode all values at once.
  if (format != FloatFormat::kInt8) return EncodeRow(format, values, out);
  for (size_t at = 0; at < values.size(); at += dim, out += RowBytes(format, dim)) {
    EncodeInt8(values.subspan(at, dim), out);
  }
}

void DecodeRows(FloatFormat format, size_t dim, const std::byte* in, std::span<float> values) {
  switch (format) {
    case FloatFormat::kFp32:
      if (!values.empty()) std::memcpy(values.data(), in, values.size_bytes());
      return;
    case FloatFormat::kBf16:
      return DecodeBf16(in, values);
    case FloatFormat::kFp16:
      return DecodeFp16(in, values);
    case FloatFormat::kInt8:
      for (size_t at = 0; at < values.size(); at += dim, in += RowBytes(format, dim)) {
        DecodeInt8(in, values.subspan(at, dim));
      }
      return;
  }
  DT_UNREACHABLE();
}

void RoundToBf16(uint64_t random, std::span<const float> values, std::byte* out) {
  const auto first = static_cast<uint32_t>(random), second = static_cast<uint32_t>(random >> 32);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t draw = Mix32(first + static_cast<uint32_t>(i) * 0x9e3779b9) ^ second;
    const auto bits = std::bit_cast<uint32_t>(values[i]);
    const bool finite = (bits & 0x7f800000) != 0x7f800000;
    const uint32_t quiet = (bits & 0x7fffff) != 0 ? 0x40 : 0;
    const uint32_t rounded = (bits + (draw & 0xffff)) >> 16;
    const auto half = static_cast<uint16_t>(finite ? rounded : bits >> 16 | quiet);
    std::memcpy(out + 2 * i, &half, 2);
  }
}

}  // namespace dt
