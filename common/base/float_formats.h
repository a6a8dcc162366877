// Number formats in which rows travel and are stored. A row of `dim` values takes RowBytes bytes,
// little-endian:
//
//   fp32   f32 [dim]
//   bf16   u16 [dim]              the upper half of a float
//   fp16   u16 [dim]              IEEE 754 binary16
//   int8   f32 scale | i8 [dim]   value = scale · number; scale = largest magnitude / 127
//
// Encoding rounds to the nearest, ties to even. What is too large for fp16 becomes ±65504. A value
// that is no finite number stays visible: as itself, in int8 as a scale that is NaN. Every
// processor gives the same bits. Pure functions; any thread. Buffers need no alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dt {

enum class FloatFormat : uint8_t { kFp32, kBf16, kFp16, kInt8 };
const char* NameOf(FloatFormat format);  // As in the job file: "fp32", …

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
// Rows one after the other, filled up to a multiple of 4 bytes.
constexpr size_t RowsBytes(FloatFormat format, size_t dim, size_t rows) {
  return (RowBytes(format, dim) * rows + 3) & ~size_t{3};
}

// Rows of `dim` values. REQUIRES: values.size() is a multiple of dim; the other side holds
// RowBytes for each (EncodeRows: RowsBytes; what fills up is zero).
void EncodeRows(FloatFormat format, size_t dim, std::span<const float> values, std::byte* out);
void DecodeRows(FloatFormat format, size_t dim, const std::byte* in, std::span<float> values);
// One row.
void EncodeRow(FloatFormat format, std::span<const float> values, std::byte* out);
inline void DecodeRow(FloatFormat format, const std::byte* in, std::span<float> values) {
  DecodeRows(format, values.size(), in, values);
}

// The row itself where it is fp32, else decoded into `room`. REQUIRES: fp32 is aligned as such.
inline const float* FloatsOf(FloatFormat format, const std::byte* in, std::span<float> room) {
  if (format == FloatFormat::kFp32) return reinterpret_cast<const float*>(in);
  DecodeRow(format, in, room);
  return room.data();
}

inline float FromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// To bf16 up or down by chance, so that the mean is the value itself: small updates to rows that
// are stored so add up instead of being rounded away. `random` decides; equal numbers, equal bits.
// Values that bf16 holds stay as they are, as do infinities and NaN.
void RoundToBf16(uint64_t random, std::span<const float> values, std::byte* out);

}  // namespace dt
