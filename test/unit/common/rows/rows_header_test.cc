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

TEST(RowsHeader, OptimizersWithADenseScopeStay) {
  RowsHeader header = kHeader;
  OptimizerSpec adam{.scope = UpdateScope::kDense, .lr = 0.1f, .beta2 = 0.98f, .l2 = 1e-7f};
  header.tables[1].missed = {adam, 77};
  header.tables[1].state = 3;
  const std::string text = HeaderText(header);
  EXPECT_TRUE(text.ends_with(
      "\nmissed 0000000000000001 77 adam lr=0.1 momentum=0.9 beta1=0.9 beta2=0.98 epsilon=1e-08 "
      "initial_accumulator=0 ftrl_l1=0 ftrl_l2=0 ftrl_beta=1 weight_decay=0 l2=1e-07"))
      << text;
  const auto parsed = ParseRowsHeader(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, header);
  header.tables[1].state = 2;
  EXPECT_FALSE(ParseRowsHeader(HeaderText(header)).ok()) << "Adam's rows have three floats of it";
  for (size_t at = kText.size() + 1; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = '~';
    EXPECT_FALSE(ParseRowsHeader(changed).ok()) << at;
  }
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
