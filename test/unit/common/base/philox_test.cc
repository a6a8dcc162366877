#include "common/base/philox.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace dt {
namespace {

// Known answers from Random123 (kat_vectors, philox4x32 10).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox(0, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~0ull, ~0ull, ~0ull),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(ToUniform(0), 0.0f);
  EXPECT_LT(ToUniform(~0u), 1.0f);
}

TEST(Philox, FillsDependOnPlaceAlone) {
  std::vector<float> all(257), some(100), other(257);
  FillNormal(7, 3, all);
  FillNormal(7, 3, some);
  FillNormal(7, 4, other);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
  EXPECT_NE(all, other);
}

// The bounds are five standard errors of estimates from 100,000 values.
TEST(Philox, FillsHaveTheirMoments) {
  std::vector<float> values(100'000);
  const auto moments = [&] {
    double sum = 0, squares = 0;
    for (const float v : values) {
      sum += v;
      squares += double{v} * v;
    }
    const auto n = static_cast<double>(values.size());
    return std::pair(sum / n, squares / n);
  };
  FillNormal(1, 0, values);
  EXPECT_NEAR(moments().first, 0, 5 / std::sqrt(1e5));
  EXPECT_NEAR(moments().second, 1, 5 * std::sqrt(2 / 1e5));
  FillUniform(1, 0, values);
  EXPECT_NEAR(moments().first, 0, 5 * std::sqrt(1 / 3e5));
  EXPECT_NEAR(moments().second, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / 1e5));
  for (const float v : values) ASSERT_TRUE(v >= -1 && v < 1) << v;
}

}  // namespace
}  // namespace dt
