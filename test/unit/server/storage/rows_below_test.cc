#include "server/storage/rows_below.h"

#include <gtest/gtest.h>

#include "test/unit/server/storage/tier_parts.h"

namespace dt::server {
namespace {

class RowsBelowTest : public ::testing::Test {
 protected:
  bool IsOnItsWay(Key key) { return !below_.FindOnItsWay(parts_.row(key)).empty(); }

  TierParts parts_;
  RowsBelow& below_ = parts_.below();
};

TEST_F(RowsBelowTest, ARecordIsFoundUntilTheDiskHasIt) {
  parts_.Send(7);
  EXPECT_TRUE(IsOnItsWay(7)) << "in the open run";
  below_.Seal();
  EXPECT_TRUE(IsOnItsWay(7)) << "while it is being written";
  parts_.WriteAll();
  EXPECT_FALSE(IsOnItsWay(7));
  EXPECT_TRUE(below_.MayHave(parts_.row(7)));
}

TEST_F(RowsBelowTest, TheNewestRecordOfARowCounts) {
  for (const int value : {1, 2, 3}) {
    std::ranges::fill(below_.Add(parts_.table(), 7), static_cast<std::byte>(value));
    if (value != 2) below_.Seal();
  }
  EXPECT_EQ(below_.FindOnItsWay(parts_.row(7))[0], std::byte{3});
}

TEST_F(RowsBelowTest, CountsTheRowsThatLeftAndDidNotComeBack) {
  for (Key key = 0; key < 5; ++key) parts_.Send(key);
  below_.NoteBack(parts_.table());
  EXPECT_EQ(below_.rows(), 4u);
  EXPECT_EQ(parts_.table().tier_counts().below, 4u);
  EXPECT_EQ(parts_.table().tier_counts().written, 5u);
}

TEST_F(RowsBelowTest, ASavedRowThatStaysInMemoryIsNotBelow) {
  below_.Add(parts_.table(), 7);
  EXPECT_EQ(below_.rows(), 0u);
  EXPECT_FALSE(below_.MayHave(parts_.row(7)));
}

TEST_F(RowsBelowTest, AFullRunIsSealed) {
  for (Key key = 0; below_.runs().empty() && key < 1000; ++key) parts_.Send(key);
  EXPECT_EQ(below_.runs().size(), 1u);
}

TEST_F(RowsBelowTest, AnEmptyRunIsNotSealed) {
  below_.Seal();
  EXPECT_TRUE(below_.runs().empty());
}

TEST_F(RowsBelowTest, RunsThatTheDiskHasNoPlaceForWaitInOrder) {
  for (Key key = 0; key < 20; ++key) {
    parts_.Send(key);
    below_.Seal();
  }
  EXPECT_TRUE(below_.runs_wait());
  parts_.WriteAll();  // Checks that runs are written in their order.
  EXPECT_FALSE(below_.runs_wait());
}

TEST_F(RowsBelowTest, ARowThatLeavesIsNowhereNoMore) {
  below_.NoteNowhere(parts_.row(7));
  EXPECT_TRUE(below_.IsNowhere(parts_.row(7)));
  parts_.Send(7);
  EXPECT_FALSE(below_.IsNowhere(parts_.row(7)));
}

}  // namespace
}  // namespace dt::server
