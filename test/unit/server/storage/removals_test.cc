#include "server/storage/removals.h"

#include <set>

#include <gtest/gtest.h>

#include "test/unit/server/storage/tier_parts.h"

namespace dt::server {
namespace {

constexpr ShardId kGone(0), kOther(1);

class RemovalsTest : public ::testing::Test {
 protected:
  // Rows of both shards.
  void SendBoth(Key key) {
    for (Shard& shard : parts_.shards().shards()) parts_.Send(shard.table(0), key);
  }
  void Begin() {
    removals_.Begin(kGone, parts_.table().tier_counts().below);
    parts_.Remove(kGone);
  }
  // Passes on one result of the disk.
  void TakeOne() {
    removals_.Work();
    const DiskThreads::Done done = parts_.Next();
    if (done.written != nullptr) parts_.below().OnWritten(done.written);
    if (done.removed.has_value()) removals_.OnRemoved(*done.removed);
    if (done.fetched == nullptr) return removals_.Work();
    EXPECT_TRUE(fetcher_.OnFetched(*done.fetched).ok());
    removals_.Work();
  }
  // The shards of all rows on disk.
  std::set<ShardId> OnDisk() const {
    std::set<ShardId> shards;
    const auto at = parts_.disk().db()->Read();
    for (Status s = at->Seek({}); s.ok() && at->valid(); s = at->Next()) {
      shards.insert(RowKey(at->key()).shard());
    }
    return shards;
  }

  mutable TierParts parts_;
  Fetcher fetcher_{parts_.shards(), parts_.below(), parts_.disk(), parts_.progress()};
  Removals removals_{parts_.below(), fetcher_, parts_.disk()};
};

TEST_F(RemovalsTest, RowsOnDiskAndOnTheirWayThereAreRemoved) {
  SendBoth(1);
  parts_.WriteAll();
  SendBoth(2);
  parts_.below().Seal();
  SendBoth(3);
  Begin();
  EXPECT_EQ(parts_.below().rows(), 3u) << "those of the other shard";
  while (removals_.Contains(kGone)) TakeOne();
  EXPECT_TRUE(parts_.below().runs().empty());
  EXPECT_EQ(OnDisk(), std::set<ShardId>{kOther});
}

TEST_F(RemovalsTest, AFetchUnderWayIsAwaited) {
  SendBoth(1);
  parts_.WriteAll();
  const Key key = 1;
  const EmbeddingTable::KeyRun run{&parts_.table(), {&key, 1}};
  ASSERT_FALSE(fetcher_.EnsureInMemory({&run, 1}));
  const DiskThreads::Done fetched = parts_.Next();
  Begin();
  TakeOne();
  EXPECT_TRUE(removals_.Contains(kGone)) << "the row could still come";
  ASSERT_TRUE(fetcher_.OnFetched(*fetched.fetched).ok());
  removals_.Work();
  EXPECT_FALSE(removals_.Contains(kGone));
}

TEST_F(RemovalsTest, WithoutADiskNothingIsToBeDone) {
  parts_.PushRows(3);
  Begin();
  removals_.Work();
  EXPECT_FALSE(removals_.Contains(kGone));
  EXPECT_EQ(parts_.disk().db(), nullptr);
}

TEST_F(RemovalsTest, RowsThatComeAfterwardsStay) {
  SendBoth(1);
  parts_.WriteAll();
  Begin();
  while (removals_.Contains(kGone)) TakeOne();
  parts_.Send(parts_.shards().Add(kGone).table(0), 5);
  parts_.WriteAll();
  EXPECT_EQ(OnDisk(), (std::set<ShardId>{kGone, kOther}));
}

}  // namespace
}  // namespace dt::server
