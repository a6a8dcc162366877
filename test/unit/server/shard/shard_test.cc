#include "server/shard/shard.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "test/support/push_maker.h"

namespace dt::server {
namespace {

constexpr Step kNever = 1'000'000;

// One table of dimension 1 with SGD, rate 1, zeros: a row is minus the sum of its gradients.
class ShardTest : public ::testing::Test {
 protected:
  static std::vector<TableSpec> Tables() {
    TableSpec spec = test::SimpleTable("t", 1);
    spec.init = {InitKind::kZeros, 0};
    return {spec};
  }
  static Contribution Of(Step step, SliceIndex slice, float gradient, Key key = 1) {
    struct Push {
      Key key;
      float gradient;
      GroupView group;
    };
    const auto push = std::make_shared<Push>(key, gradient);
    push->group = {0, {&push->key, 1}, std::as_bytes(std::span(&push->gradient, 1))};
    return {.step = step, .slice = slice, .groups = {&push->group, 1}, .owner = push};
  }
  static Contribution Piece(Contribution contribution, uint32_t piece, uint32_t pieces) {
    contribution.piece = piece;
    contribution.pieces = pieces;
    return contribution;
  }
  Status Take(Contribution contribution) { return shard_.Take(std::move(contribution), context_); }
  float Row(Key key = 1) {
    float value = 0;
    shard_.table(0).Pull({&key, 1}, {&value, 1});
    return value;
  }
  const std::unique_ptr<TableRows> rows_[1] = {std::make_unique<TableRows>(Tables()[0])};
  Shard shard_{ShardId(3), rows_, MakeSyncClock(3)};
  ShardContext context_;
};

TEST_F(ShardTest, AppliesOnlyWhenCompleteAndWhole) {
  ASSERT_TRUE(Take(Of(0, 0, 1)).ok());
  ASSERT_TRUE(Take(Of(0, 2, 4)).ok());
  shard_.Advance(kNever, context_);
  EXPECT_EQ(shard_.now(), 0u);  // The step is declared complete, but slice 1 is missing.
  EXPECT_EQ(shard_.clock().Missing(), "slice 1 of step 0");
  ASSERT_TRUE(Take(Of(0, 1, 2)).ok());
  EXPECT_EQ(Row(), 0.0f);  // All pushes are here, but the step is not declared complete.
  shard_.Advance(1, context_);
  EXPECT_EQ(shard_.now(), 1u);
  EXPECT_EQ(Row(), -7.0f);
  EXPECT_EQ(shard_.clock().held_bytes(), 0u);
}

TEST_F(ShardTest, SecondCopiesAreAcknowledgedAndDropped) {
  for (SliceIndex s = 0; s < 3; ++s) {
    ASSERT_TRUE(Take(Of(0, s, 1)).ok());
    const uint64_t held = shard_.clock().held_bytes();
    ASSERT_TRUE(Take(Of(0, s, 100)).ok());
    EXPECT_EQ(shard_.clock().held_bytes(), held);
  }
  shard_.Advance(1, context_);
  ASSERT_TRUE(Take(Of(0, 1, 100)).ok());  // The push belongs to an applied step.
  shard_.Advance(kNever, context_);
  EXPECT_EQ(Row(), -3.0f);
  EXPECT_EQ(shard_.now(), 1u);
}

TEST_F(ShardTest, SumsInSliceOrderWhateverTheArrival) {
  const float gradients[] = {1e8f, -1e8f, 1.0f};  // In another order the sum would lose the 1.
  std::vector<SliceIndex> order = {0, 1, 2};
  do {
    shard_.Reset(0, {.now = 0});
    for (const SliceIndex s : order) ASSERT_TRUE(Take(Of(0, s, gradients[s])).ok());
    shard_.Advance(1, context_);
    EXPECT_EQ(Row(), -1.0f);
  } while (std::ranges::next_permutation(order).found);
}

TEST_F(ShardTest, PiecesOfOneSliceGoTogetherInTheirOrder) {
  const float gradients[] = {1e8f, -1e8f, 1.0f};
  for (const std::vector<uint32_t>& order : {std::vector<uint32_t>{2, 0, 1}, {1, 2, 0}}) {
    shard_.Reset(0, {.now = 0});
    for (const uint32_t p : order) {
      EXPECT_FALSE(shard_.clock().CanReach(1));
      ASSERT_TRUE(Take(Piece(Of(0, 1, gradients[p]), p, 3)).ok());
    }
    ASSERT_TRUE(Take(Of(0, 0, 0)).ok());
    ASSERT_TRUE(Take(Of(0, 2, 0)).ok());
    shard_.Advance(1, context_);
    EXPECT_EQ(Row(), -1.0f);
  }
}

TEST_F(ShardTest, ContradictingNumbersOfPiecesAreRefused) {
  ASSERT_TRUE(Take(Piece(Of(0, 1, 1), 0, 2)).ok());
  EXPECT_EQ(Take(Piece(Of(0, 1, 1), 0, 3)).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(shard_.clock().Missing(), "slice 0 of step 0");
}

TEST_F(ShardTest, TooEarlyContributionsMustComeAgain) {
  EXPECT_EQ(Take(Of(1, 0, 1)).code(), StatusCode::kResourceExhausted);
  for (SliceIndex s = 0; s < 3; ++s) ASSERT_TRUE(Take(Of(0, s, 1)).ok());
  EXPECT_EQ(Take(Of(2, 0, 1)).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Take(Of(1, 0, 1)).ok());
}

TEST_F(ShardTest, EmptyContributionsMoveTheClock) {
  for (SliceIndex s = 0; s < 3; ++s) {
    ASSERT_TRUE(Take({.step = 0, .slice = s, .groups = {}, .owner = nullptr}).ok());
  }
  shard_.Advance(kNever, context_);
  EXPECT_EQ(shard_.now(), 1u);
  EXPECT_EQ(shard_.table(0).rows(), 0u);
}

TEST_F(ShardTest, ResetForgetsRowsAndContributions) {
  for (SliceIndex s = 0; s < 3; ++s) ASSERT_TRUE(Take(Of(0, s, 1)).ok());
  shard_.Advance(1, context_);
  ASSERT_TRUE(Take(Of(1, 0, 1)).ok());
  shard_.Reset(40, {.now = 40});
  EXPECT_EQ(shard_.now(), 40u);
  EXPECT_EQ(shard_.clock().held_bytes(), 0u);
  EXPECT_EQ(Row(), 0.0f);
  EXPECT_EQ(shard_.clock().Missing(), "every slice of step 40");
}

}  // namespace
}  // namespace dt::server
