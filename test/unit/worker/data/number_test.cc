#include "worker/data/format/number.h"

#include <cmath>

#include <gtest/gtest.h>

namespace dt::worker {
namespace {

TEST(ParseU64, IsExactAndStrict) {
  uint64_t value = 0;
  EXPECT_TRUE(ParseU64("18446744073709551615", value));
  EXPECT_EQ(value, ~uint64_t{0});
  // This number is not representable as a double.
  EXPECT_TRUE(ParseU64("9007199254740993", value));
  EXPECT_EQ(value, 9007199254740993u);
  EXPECT_TRUE(ParseU64("007", value));
  EXPECT_EQ(value, 7u);
  for (const char* bad :
       {"", "18446744073709551616", "-1", "+1", "1.0", "1e3", "0x1", " 1", "1 "}) {
    EXPECT_FALSE(ParseU64(bad, value)) << bad;
  }
}

TEST(ParseI64, TakesASign) {
  int64_t value = 0;
  EXPECT_TRUE(ParseI64("-9223372036854775808", value));
  EXPECT_EQ(value, INT64_MIN);
  EXPECT_TRUE(ParseI64("+12", value));
  EXPECT_EQ(value, 12);
  for (const char* bad : {"", "-", "+", "+-1", "9223372036854775808", "1.5"}) {
    EXPECT_FALSE(ParseI64(bad, value)) << bad;
  }
}

TEST(ParseFloat, TakesFiniteNumbersOnly) {
  const struct {
    const char* text;
    float value;
  } kGood[] = {{"0", 0},
               {"-0", 0},
               {"12", 12},
               {"-1234567", -1234567},
               {"+1", 1},
               {"+1.5", 1.5},
               {"1e-3", 1e-3f},
               {".5", .5f},
               {"16777217", 16777216.0f},
               {"3.4028235e38", 3.4028235e38f},
               {"1e-300", 0},
               {"1e-400", 0},
               {"0.1", 0.1f},
               {"-2.5E2", -250}};
  for (const auto& [text, value] : kGood) {
    float found = -99;
    EXPECT_TRUE(ParseFloat(text, found)) << text;
    EXPECT_EQ(found, value) << text;
  }
  for (const char* bad : {"", "-", "+", "nan", "inf", "-inf", "1e39", "1e400", "-1e400", "1,5",
                          "1 ", "abc", "1-", "--1", "0x10", "+-1", "1234567x"}) {
    float found = 0;
    EXPECT_FALSE(ParseFloat(bad, found)) << bad;
  }
}

TEST(SignedLog, IsOddAndLogarithmic) {
  EXPECT_EQ(SignedLog(0), 0);
  EXPECT_FLOAT_EQ(SignedLog(1), std::log(2.0f));
  EXPECT_FLOAT_EQ(SignedLog(-7), -std::log(8.0f));
}

TEST(Quoted, ShowsAnyBytesInOneShortLine) {
  EXPECT_EQ(Quoted(""), "an empty cell");
  EXPECT_EQ(Quoted("abc"), "\"abc\"");
  EXPECT_EQ(Quoted(std::string_view("a\n\0\xff", 4)), "\"a\\x0a\\x00\\xff\"");
  EXPECT_EQ(Quoted(std::string(100, 'x')), "\"" + std::string(40, 'x') + "…\"");
}

}  // namespace
}  // namespace dt::worker
