#include "server/storage/evictor.h"

#include <gtest/gtest.h>

#include "test/unit/server/storage/tier_parts.h"

namespace dt::server {
namespace {

constexpr uint64_t kMemory = 1 << 20;
constexpr Key kFitting = 1000, kTooMany = 20'000;

class EvictorTest : public ::testing::Test {
 protected:
  Evictor MakeEvictor(uint64_t memory = kMemory) {
    return Evictor(TierBudget(memory), parts_.shards(), parts_.below(), parts_.progress());
  }
  // Runs until nothing more is evicted, with a disk that keeps up.
  void WorkUntilDone(Evictor& evictor) {
    for (uint64_t before = ~uint64_t{0}; parts_.below().rows() != before;) {
      before = parts_.below().rows();
      for (int turn = 0; turn < 8; ++turn) {  // Recently used rows must age first.
        evictor.Work();
        parts_.WriteAll();
      }
    }
  }

  TierParts parts_{512 << 10};  // More than leaves in one step of the clock hand.
};

TEST_F(EvictorTest, RowsThatFitStay) {
  parts_.PushRows(kFitting);
  Evictor evictor = MakeEvictor();
  WorkUntilDone(evictor);
  EXPECT_EQ(parts_.below().rows(), 0u);
}

TEST_F(EvictorTest, RowsBeyondTheMemoryLeave) {
  parts_.PushRows(kTooMany);
  Evictor evictor = MakeEvictor();
  WorkUntilDone(evictor);
  EXPECT_GT(parts_.below().rows(), 0u);
  EXPECT_EQ(parts_.below().rows() + parts_.table().rows(), kTooMany);
}

TEST_F(EvictorTest, NoMoreRowsLeaveWhileTheDiskIsBehind) {
  parts_.PushRows(kTooMany);
  Evictor evictor = MakeEvictor();
  for (int turn = 0; turn < 100; ++turn) evictor.Work();
  EXPECT_EQ(parts_.below().runs().size(), Evictor::kRunsMax);
}

TEST_F(EvictorTest, IsFullOnlyWhileTheDiskIsBehind) {
  const Evictor evictor = MakeEvictor();
  constexpr uint64_t kFar = uint64_t{1} << 40;
  EXPECT_FALSE(evictor.IsFull(kFar));
  for (Key key = 0; key < Evictor::kRunsMax; ++key) {
    parts_.Send(key);
    parts_.below().Seal();
  }
  EXPECT_TRUE(evictor.IsFull(kFar));
  EXPECT_FALSE(evictor.IsFull(0));
}

TEST_F(EvictorTest, ASmallBudgetLeavesHalfOfItToTheRows) {
  EXPECT_EQ(MakeEvictor(1 << 16).bytes_max(), uint64_t{1} << 15);
}

TEST(TierBudget, RunsAndCacheHaveTheirLimits) {
  EXPECT_EQ(TierBudget(0).run_bytes, uint64_t{64} << 10);
  EXPECT_EQ(TierBudget(uint64_t{1} << 40).run_bytes, uint64_t{32} << 20);
  EXPECT_EQ(TierBudget(uint64_t{1} << 40).cache_bytes, uint64_t{512} << 20);
}

}  // namespace
}  // namespace dt::server
