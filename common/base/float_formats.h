// Number formats in which rows travel and are stored. A row of `dim` values takes RowBytes bytes,
// little-endian:
//
//   fp32   f32 [dim]
//   bf16   u16 [dim]              the upper half of a float
//   fp16   u16 [dim]              IEEE 754 binary16
//   int8   f32 scale | i8 [dim]   value = scale · number; scale = largest magnitude / 127
//
// Encoding rounds to the nearest, ties to even. A finite value too large for fp16 becomes ±65504.
// Infinity and NaN are kept, except in int8: there the scale of their row becomes NaN, and so does
// every value of it. Every processor gives the same bits. Pure functions; any thread. Buffers need
// no alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dt {

enum class FloatFormat : uint8_t { kFp32, kBf16, kFp16, kInt8 };
const char* NameOf(FloatFormat format);  // The word in the job file: "fp32", …

constexpr size_t RowBytes(FloatFormat format, size_t dim) {
  switch (format) {
    case FloatFormat::kFp32:
      return dim * 4;
    case FloatFormat::kBf16:
    case FloatFormat::kFp16:
      return dim * 2;
    case FloatFormat::kInt8:
      return 4 + dim;
  }
  return 0;
}
// Bytes of rows that follow each other, padded to a multiple of 4.
constexpr size_t RowsBytes(FloatFormat format, size_t dim, size_t rows) {
  return (RowBytes(format, dim) * rows + 3) & ~size_t{3};
}

// Convert rows of `dim` values. REQUIRES: values.size() is a multiple of dim; the other buffer
// holds RowBytes for each row (for EncodeRows, RowsBytes: the padding is set to zero).
void EncodeRows(FloatFormat format, size_t dim, std::span<const float> values, std::byte* out);
void DecodeRows(FloatFormat format, size_t dim, const std::byte* in, std::span<float> values);
// Convert one row.
void EncodeRow(FloatFormat format, std::span<const float> values, std::byte* out);
inline void DecodeRow(FloatFormat format, const std::byte* in, std::span<float> values) {
  DecodeRows(format, values.size(), in, values);
}

// Returns the row itself if it is fp32, else the row decoded into `room`. REQUIRES: an fp32 row is
// aligned as float.
inline const float* FloatsOf(FloatFormat format, const std::byte* in, std::span<float> room) {
  if (format == FloatFormat::kFp32) return reinterpret_cast<const float*>(in);
  DecodeRow(format, in, room);
  return room.data();
}

inline float FromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Converts to bf16, rounding up or down at random (stochastic rounding), so that the expected
// result is the value itself: small updates to rows in bf16 then add up instead of being rounded
// away. Equal values and equal `random` give equal bits. Values that bf16 can represent stay as
// they are, as do infinities and NaN.
void RoundToBf16(uint64_t random, std::span<const float> values, std::byte* out);

}  // namespace dt
