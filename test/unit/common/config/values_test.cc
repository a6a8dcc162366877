#include "common/config/reader/values.h"

#include <limits>

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(Values, WholeNumbersAreExact) {
  EXPECT_EQ(ParseUint("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ParseUint("0"), 0u);
  EXPECT_EQ(ParseInt("-3"), -3);
  for (const char* text : {"", "-1", "1.0", "1e3", "18446744073709551616", " 1", "0x10", "4O96"}) {
    EXPECT_EQ(ParseUint(text), std::nullopt) << text;
  }
}

TEST(Values, NumbersAreFinite) {
  EXPECT_EQ(ParseFloat("1.0e-4"), 1.0e-4);
  EXPECT_EQ(ParseFloat("-.5"), -0.5);
  EXPECT_EQ(ParseFloat("+2"), 2.0);
  for (const char* text : {"", "inf", "nan", "1,5", "1e999", "x"}) {
    EXPECT_EQ(ParseFloat(text), std::nullopt) << text;
  }
}

TEST(Values, SizesHaveUnits) {
  EXPECT_EQ(ParseSize("8GiB"), 8ull << 30);
  EXPECT_EQ(ParseSize("1.5 MiB"), 3ull << 19);
  EXPECT_EQ(ParseSize("2KB"), 2000u);
  EXPECT_EQ(ParseSize("4096"), 4096u);
  for (const char* text : {"", "GiB", "8Gig", "-1GiB", "99999999TiB"}) {
    EXPECT_EQ(ParseSize(text), std::nullopt) << text;
  }
}

TEST(Values, TimesNeedAUnit) {
  EXPECT_EQ(ParseDuration("3s"), seconds(3));
  EXPECT_EQ(ParseDuration("500ms"), milliseconds(500));
  EXPECT_EQ(ParseDuration("1.5 m"), seconds(90));
  EXPECT_EQ(ParseDuration("2h"), seconds(7200));
  for (const char* text : {"", "3", "s", "-3s", "3 days"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace dt
