#include "common/base/float_formats.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/base/philox.h"

namespace dt {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
using enum FloatFormat;
constexpr FloatFormat kAll[] = {kFp32, kBf16, kFp16, kInt8};

std::vector<float> RoundTrip(FloatFormat format, size_t dim, const std::vector<float>& values) {
  const size_t rows = values.size() / dim;
  // One guard byte on each side detects writes outside the rows, and makes them unaligned.
  std::vector<std::byte> bytes(RowsBytes(format, dim, rows) + 2, std::byte{0xa5});
  EncodeRows(format, dim, values, bytes.data() + 1);
  EXPECT_EQ(bytes.front(), std::byte{0xa5});
  EXPECT_EQ(bytes.back(), std::byte{0xa5});
  for (size_t i = RowBytes(format, dim) * rows + 1; i + 1 < bytes.size(); ++i) {
    EXPECT_EQ(bytes[i], std::byte{0}) << "filled up with zeros";
  }
  std::vector<float> out(values.size());
  DecodeRows(format, dim, bytes.data() + 1, out);
  return out;
}
float RoundTrip(FloatFormat format, float value) { return RoundTrip(format, 1, {value})[0]; }

TEST(FloatFormats, Sizes) {
  EXPECT_EQ(RowBytes(kFp32, 3), 12u);
  EXPECT_EQ(RowBytes(kBf16, 3), 6u);
  EXPECT_EQ(RowBytes(kFp16, 3), 6u);
  EXPECT_EQ(RowBytes(kInt8, 3), 7u);
  EXPECT_EQ(RowsBytes(kFp16, 3, 3), 20u);
  EXPECT_EQ(RowsBytes(kInt8, 5, 2), 20u);
  EXPECT_EQ(RowsBytes(kInt8, 5, 0), 0u);
}

TEST(FloatFormats, EveryHalfIsItself) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    for (const FloatFormat format : {kBf16, kFp16}) {
      float value;
      DecodeRow(format, reinterpret_cast<const std::byte*>(&half), {&value, 1});
      uint16_t again;
      EncodeRow(format, {&value, 1}, reinterpret_cast<std::byte*>(&again));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(RoundTrip(format, value)));
      } else {
        ASSERT_EQ(again, half);
      }
    }
  }
}

// A value between two neighbours of a format is rounded to the nearer one, in a tie to the even
// one.
void ExpectNearest(FloatFormat format, uint16_t below_bits) {
  const uint16_t above_bits = static_cast<uint16_t>(below_bits + 1);
  float below, above;
  DecodeRow(format, reinterpret_cast<const std::byte*>(&below_bits), {&below, 1});
  DecodeRow(format, reinterpret_cast<const std::byte*>(&above_bits), {&above, 1});
  const float middle = below + (above - below) / 2;
  const float even = below_bits % 2 == 0 ? below : above;
  ASSERT_EQ(RoundTrip(format, middle), even) << below;
  ASSERT_EQ(RoundTrip(format, std::nextafter(middle, below)), below);
  ASSERT_EQ(RoundTrip(format, std::nextafter(middle, above)), above);
  ASSERT_EQ(RoundTrip(format, -middle), -even);
}

TEST(FloatFormats, RoundsToTheNearest) {
  for (uint32_t bits = 0x0001; bits < 0x7bff; bits += 37) {
    ExpectNearest(kFp16, static_cast<uint16_t>(bits));
  }
  for (uint32_t bits = 0x0100; bits < 0x7f00; bits += 37) {
    ExpectNearest(kBf16, static_cast<uint16_t>(bits));
  }
}

TEST(FloatFormats, WhatIsTooLargeForFp16IsItsLargest) {
  for (const float v : {65504.0f, 65520.0f, 1e6f, 3e38f}) {
    EXPECT_EQ(RoundTrip(kFp16, v), 65504.0f);
    EXPECT_EQ(RoundTrip(kFp16, -v), -65504.0f);
  }
}

TEST(FloatFormats, WhatIsNoNumberStaysVisible) {
  for (const size_t dim : {1, 7, 8, 20}) {
    for (const float bad : {kInfinity, -kInfinity, kNan}) {
      std::vector<float> row(dim, 0.5f);
      row[dim / 2] = bad;
      for (const FloatFormat format : kAll) {
        const float out = RoundTrip(format, dim, row)[dim / 2];
        if (std::isnan(bad) || format == kInt8) {
          EXPECT_TRUE(std::isnan(out));
        } else {
          EXPECT_EQ(out, bad);
        }
      }
      std::vector<uint16_t> halves(dim);
      RoundToBf16(99, row, reinterpret_cast<std::byte*>(halves.data()));
      const float out = FromBf16(halves[dim / 2]);
      EXPECT_TRUE(std::isnan(bad) ? std::isnan(out) : out == bad);
    }
  }
}

TEST(FloatFormats, Int8IsWithinHalfAStepOfItsRow) {
  for (const size_t dim : {1, 2, 9, 64, 1000}) {
    for (const float size : {1e-30f, 1e-4f, 1.0f, 1e30f}) {
      std::vector<float> values(3 * dim);
      FillNormal(5, dim, values);
      for (float& v : values) v *= size;
      const std::vector<float> out = RoundTrip(kInt8, dim, values);
      for (size_t i = 0; i < values.size(); ++i) {
        float most = 0;
        for (size_t d = 0; d < dim; ++d) most = std::max(most, std::abs(values[i / dim * dim + d]));
        ASSERT_LE(std::abs(out[i] - values[i]), most / 127 * 0.5001f);
      }
    }
  }
}

TEST(FloatFormats, RowsOfZerosAndOfNextToNothingAreZeros) {
  for (const float v : {0.0f, -0.0f, 1e-40f, 1e-37f}) EXPECT_EQ(RoundTrip(kInt8, v), 0.0f);
  EXPECT_EQ(RoundTrip(kFp16, 1e-10f), 0.0f);
}

// The bits of a row do not depend on the rows beside it, at any length.
TEST(FloatFormats, RowsDoNotDependOnEachOther) {
  for (const FloatFormat format : kAll) {
    for (size_t dim = 1; dim < 40; ++dim) {
      std::vector<float> values(5 * dim);
      FillNormal(7, dim, values);
      const std::vector<float> together = RoundTrip(format, dim, values);
      for (size_t row = 0; row < 5; ++row) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * dim);
        const std::vector<float> alone =
            RoundTrip(format, dim, {begin, begin + static_cast<std::ptrdiff_t>(dim)});
        ASSERT_EQ(0, std::memcmp(alone.data(), &together[row * dim], dim * sizeof(float)));
      }
    }
  }
}

TEST(FloatFormats, RoundingByChanceHasTheRightMean) {
  constexpr size_t kDim = 16, kDraws = 20'000;
  std::vector<float> values(kDim);
  FillNormal(3, 0, values);
  values[3] = 1.0f;  // This value is exact in every format.
  values[4] = -1.0f - 0x1p-9f;
  std::vector<double> sums(kDim);
  std::vector<uint16_t> halves(kDim);
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    RoundToBf16(MixBits(draw + 1), values, reinterpret_cast<std::byte*>(halves.data()));
    for (size_t i = 0; i < kDim; ++i) {
      const float out = FromBf16(halves[i]);
      sums[i] += out;
      ASSERT_LT(std::abs(out - values[i]), std::abs(values[i]) * 0x1p-7f);
    }
    ASSERT_EQ(FromBf16(halves[3]), 1.0f);
  }
  for (size_t i = 0; i < kDim; ++i) {
    // The spacing is at most 2^-7 of the value; the mean of n draws deviates by less than spacing /
    // sqrt(n).
    const double step = std::abs(values[i]) * 0x1p-7;
    EXPECT_NEAR(sums[i] / kDraws, values[i], 2.5 * step / std::sqrt(kDraws)) << i;
  }
}

TEST(FloatFormats, RoundingByChanceIsAFunctionOfItsNumberAndColumn) {
  std::vector<float> values(100);
  FillNormal(4, 0, values);
  const auto round = [&](uint64_t random, size_t count) {
    std::vector<uint16_t> halves(count);
    RoundToBf16(random, {values.data(), count}, reinterpret_cast<std::byte*>(halves.data()));
    return halves;
  };
  const auto whole = round(1234, 100);
  for (size_t count = 0; count < 100; ++count) {
    ASSERT_EQ(round(1234, count),
              std::vector<uint16_t>(whole.begin(), whole.begin() + static_cast<int>(count)));
  }
  EXPECT_NE(round(1235, 100), whole);
  EXPECT_NE(round(1234 + 0x5a5a00000000, 100), whole);
}

}  // namespace
}  // namespace dt
