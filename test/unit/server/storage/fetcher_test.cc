#include "server/storage/fetcher.h"

#include <gtest/gtest.h>

#include "test/unit/server/storage/tier_parts.h"

namespace dt::server {
namespace {

class FetcherTest : public ::testing::Test {
 protected:
  bool Ensure(Key key) {
    const EmbeddingTable::KeyRun run{&parts_.table(), {&key, 1}};
    return fetcher_.EnsureInMemory({&run, 1});
  }
  // Waits for a fetch of the disk, and returns its number of rows.
  size_t TakeFetch() {
    const DiskThreads::Done done = parts_.Next();
    EXPECT_NE(done.fetched, nullptr);
    const Status status = fetcher_.OnFetched(*done.fetched);
    EXPECT_TRUE(status.ok()) << status;
    return done.fetched->rows.size();
  }

  TierParts parts_;
  Fetcher fetcher_{parts_.shards(), parts_.below(), parts_.disk(), parts_.progress()};
};

TEST_F(FetcherTest, ARowInMemoryNeedsNothing) {
  parts_.PushRows(1);
  parts_.Send(100);
  EXPECT_TRUE(Ensure(0));
}

TEST_F(FetcherTest, AKeyWithoutARowNeedsNothing) {
  parts_.Send(100);
  EXPECT_TRUE(Ensure(0));
}

TEST_F(FetcherTest, ARowOnItsWayComesBackAtOnce) {
  parts_.Send(7);
  EXPECT_TRUE(Ensure(7));
  EXPECT_TRUE(parts_.table().Contains(7));
  EXPECT_EQ(parts_.below().rows(), 0u);
}

TEST_F(FetcherTest, ARowOnDiskComesWhenItIsRead) {
  parts_.Send(7);
  parts_.WriteAll();
  EXPECT_FALSE(Ensure(7));
  TakeFetch();
  EXPECT_TRUE(Ensure(7));
  EXPECT_TRUE(parts_.table().Contains(7));
  EXPECT_EQ(parts_.table().tier_counts().fetched, 1u);
}

TEST_F(FetcherTest, TwoWhoWaitForARowReadItOnce) {
  parts_.Send(7);
  parts_.WriteAll();
  EXPECT_FALSE(Ensure(7));
  EXPECT_FALSE(Ensure(7));
  EXPECT_EQ(TakeFetch(), 1u);
  EXPECT_FALSE(parts_.disk().Take(milliseconds(50)).has_value());
}

TEST_F(FetcherTest, ProgressIsNotedWhenTheLastRowOfSomebodyIsThere) {
  for (const Key key : {1, 2}) parts_.Send(key);
  parts_.WriteAll();
  const Key keys[] = {1, 2};
  const EmbeddingTable::KeyRun run{&parts_.table(), keys};
  EXPECT_FALSE(fetcher_.EnsureInMemory({&run, 1}));
  EXPECT_TRUE(parts_.progress().awaited());
  const uint64_t before = parts_.progress().count();
  EXPECT_EQ(TakeFetch(), 2u) << "one fetch for both";
  EXPECT_EQ(parts_.progress().count(), before + 1);
  EXPECT_FALSE(parts_.progress().awaited());
}

TEST_F(FetcherTest, AKeyThatTheDiskDoesNotHaveIsAskedForOnce) {
  parts_.Send(1);
  parts_.WriteAll();
  // Adds key 7 to the filter without a row on disk, which imitates a false positive.
  parts_.below().Left(parts_.table(), 7);
  EXPECT_FALSE(Ensure(7));
  TakeFetch();
  EXPECT_TRUE(Ensure(7));
  EXPECT_FALSE(parts_.table().Contains(7));
}

TEST_F(FetcherTest, RowsBeyondWhatTheDiskTakesAreGatheredInOneFetch) {
  constexpr Key kKeys = 200;
  for (Key key = 0; key < kKeys; ++key) parts_.Send(key);
  parts_.WriteAll();
  for (Key key = 0; key < kKeys; ++key) EXPECT_FALSE(Ensure(key));
  size_t fetches = 0, rows = 0;
  for (; rows < kKeys; ++fetches) rows += TakeFetch();
  EXPECT_LT(fetches, kKeys / 2);
  for (Key key = 0; key < kKeys; ++key) EXPECT_TRUE(parts_.table().Contains(key)) << key;
}

TEST_F(FetcherTest, ARowOfAShardThatHasGoneIsDropped) {
  parts_.Send(7);
  parts_.WriteAll();
  EXPECT_FALSE(Ensure(7));
  parts_.Remove(ShardId(0));
  EXPECT_EQ(TakeFetch(), 1u);
  EXPECT_EQ(parts_.shards().Add(ShardId(0)).table(0).rows(), 0u);
}

}  // namespace
}  // namespace dt::server
