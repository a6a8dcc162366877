#include "common/rows/rows_header.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

const RowsHeader kHeader{
    1200,
    64,
    {ShardId(0), ShardId(63)},
    {512, 18'446'744'073'709'551'615u},
    {{TableId(0xc0ffee), 16, 17, "item of shop"}, {TableId(1), 1, 0, "b", FloatFormat::kBf16}}};
constexpr std::string_view kText =
    "dovetail rows 3\nstep 1200\nshards 64\nholds 0 63\npositions 512 18446744073709551615\n"
    "table 0000000000c0ffee 16 fp32 17 item of shop\ntable 0000000000000001 1 bf16 0 b";

TEST(RowsHeader, TextStays) {
  EXPECT_EQ(HeaderText(kHeader), kText);
  const auto parsed = ParseRowsHeader(kText);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, kHeader);
}

// A worker's header, or one that was saved before shards had positions.
TEST(RowsHeader, PositionsMayBeAbsentButNotSomeOfThem) {
  RowsHeader without = kHeader;
  without.positions.clear();
  const std::string text = HeaderText(without);
  EXPECT_EQ(text.substr(0, 15), "dovetail rows 2");
  EXPECT_EQ(*ParseRowsHeader(text), without);
  std::string some(kText);
  some.replace(some.find(" 18446744073709551615"), 21, "");
  EXPECT_EQ(ParseRowsHeader(some).status().code(), StatusCode::kDataLoss);
}

TEST(RowsHeader, HoldingNothingIsFine) {
  const RowsHeader none{.shards = 8};
  EXPECT_EQ(*ParseRowsHeader(HeaderText(none)), none);
}

TEST(RowsHeader, AnyChangeIsDataLossOrAnotherHeader) {
  for (size_t at = 0; at < kText.size(); ++at) {
    for (const char c : {'x', '\n', ' ', '9', '\0'}) {
      std::string text(kText);
      if (text[at] == c) continue;
      text[at] = c;
      const auto parsed = ParseRowsHeader(text);
      if (parsed.ok()) {
        EXPECT_NE(*parsed, kHeader) << at;
      } else {
        EXPECT_EQ(parsed.status().code(), StatusCode::kDataLoss);
      }
    }
    const auto cut = ParseRowsHeader(kText.substr(0, at));
    EXPECT_TRUE(!cut.ok() || *cut != kHeader) << at;
  }
}

}  // namespace
}  // namespace dt
