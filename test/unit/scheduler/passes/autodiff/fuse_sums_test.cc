// Goal: gradients are joined into buckets in the order in which the backward pass makes them, by
// size or at given places, and never with those of other holders.
#include "scheduler/passes/autodiff/fuse_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

using ::testing::ElementsAre;

constexpr double kMiB = 1 << 20;

SumToFuse Sum(NodeIndex producer, double bytes, int64_t holder = 0) {
  SumToFuse sum;
  sum.producer = producer;
  sum.bytes = bytes;
  sum.held["group"] = std::vector<int64_t>{holder};
  return sum;
}

TEST(FuseSums, TheLastLayerIsFirst) {
  const std::vector<SumToFuse> sums = {Sum(30, 10), Sum(20, 10), Sum(10, 10)};
  EXPECT_THAT(FuseSums(sums, {.bytes = 10, .begins = {}}), ElementsAre(2, 1, 0));
  EXPECT_THAT(FuseSums(sums, {.bytes = 20, .begins = {}}), ElementsAre(1, 0, 0));
  EXPECT_THAT(FuseSums(sums, {.bytes = 1000, .begins = {}}), ElementsAre(0, 0, 0));
}

TEST(FuseSums, BucketsBeginWhereTheJobSays) {
  std::vector<SumToFuse> sums;
  for (NodeIndex n = 0; n < 6; ++n) sums.push_back(Sum(n, kMiB));
  EXPECT_THAT(FuseSums(sums, {.begins = {1, 4}}), ElementsAre(0, 1, 1, 1, 2, 2));
  EXPECT_THAT(FuseSums(sums, {.begins = {0, 99}}), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(FuseSums, BucketsOfOthersStayOpenAndComeInTheOrderOfTheirLastGradients) {
  const std::vector<SumToFuse> sums = {Sum(1, 10, 0), Sum(2, 10, 1), Sum(3, 10, 0),
                                       Sum(4, 10, 1), Sum(5, 10, 2), Sum(6, 10, 0)};
  EXPECT_THAT(FuseSums(sums, {.bytes = 20, .begins = {}}), ElementsAre(0, 1, 0, 1, 2, 3));
  EXPECT_THAT(FuseSums(sums, {.bytes = 100, .begins = {}}), ElementsAre(2, 0, 2, 0, 1, 2));
}

TEST(FuseSums, NumberedSumsShareABucketOfTheirOwn) {
  std::vector<SumToFuse> sums;
  for (NodeIndex n = 0; n < 6; ++n) sums.push_back(Sum(n, 10));
  sums[1].fusion = sums[3].fusion = 7;
  sums[4].fusion = 2;
  EXPECT_THAT(FuseSums(sums, {.bytes = 20, .begins = {}}), ElementsAre(0, 1, 0, 1, 2, 3));
  EXPECT_THAT(FuseSums(sums, {.bytes = 10, .begins = {}}), ElementsAre(0, 2, 1, 2, 3, 4));
  EXPECT_THAT(FuseSums(sums, {.begins = {2}}), ElementsAre(0, 1, 3, 1, 2, 3));
}

TEST(FuseSums, AutoMakesEightBucketsUnlessTheyAreSmallOrHuge) {
  const auto buckets = [](size_t count, double bytes) {
    std::vector<SumToFuse> sums;
    for (NodeIndex n = 0; n < count; ++n) sums.push_back(Sum(n, bytes));
    return FuseSums(sums, {}).back() + 1;
  };
  EXPECT_EQ(buckets(80, kMiB), 8u);
  EXPECT_EQ(buckets(80, 1024), 1u);
  EXPECT_EQ(buckets(8, kMiB / 16), 2u);
  EXPECT_EQ(buckets(64, 32 * kMiB), 32u);
}

}  // namespace
}  // namespace dt::scheduler
