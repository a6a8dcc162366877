#include "server/storage/row_files.h"

#include <set>

#include <gtest/gtest.h>

#include "common/rows/row_keys.h"
#include "test/unit/server/storage/tier_parts.h"

namespace dt::server {
namespace {

class RowFilesTest : public ::testing::Test {
 protected:
  // Writes a checkpoint with a row of each of these shards.
  std::string CheckpointOf(const std::vector<ShardId>& shards) {
    RowFiles files(temp_ / "first", {});
    RowRun run;
    for (const ShardId shard : shards) run.Add(RowKey(shard, TableId(1), 7), 4);
    EXPECT_TRUE(files.Write(run, {}).ok());
    CheckpointTask task{.folder = temp_ / "saved", .name = "saved"};
    task.notes = {{std::string(kHeaderKey), "header"}};
    for (const ShardId shard : shards) task.notes.emplace_back(StateKey(shard, TableId(1)), "");
    const Status made = files.MakeCheckpoint(task);
    EXPECT_TRUE(made.ok()) << made;
    return task.folder;
  }
  // The shards that anything is there of.
  static std::set<ShardId> ShardsIn(const RowFiles& files) {
    std::set<ShardId> shards;
    const auto at = files.db()->Read();
    for (Status s = at->Seek({}); s.ok() && at->valid(); s = at->Next()) {
      if (at->key() != kHeaderKey) shards.insert(ShardOfKey(at->key()));
    }
    return shards;
  }

  const test::ScratchFolder temp_;
};

TEST_F(RowFilesTest, AdoptedFilesLoseWhatTheyHaveOfOtherShards) {
  const std::string saved =
      CheckpointOf({ShardId(0), ShardId(3), ShardId(4), ShardId(9), ShardId(~0u)});
  const std::vector<ShardId> held = {ShardId(3), ShardId(5), ShardId(9)};
  RowFiles files(temp_ / "second", {});
  const Status adopted = files.Adopt(saved, held);
  ASSERT_TRUE(adopted.ok()) << adopted;
  EXPECT_EQ(ShardsIn(files), (std::set<ShardId>{ShardId(3), ShardId(9)}));
}

TEST_F(RowFilesTest, ARemovedShardLeavesTheOthers) {
  RowFiles files(temp_ / "rows", {.cuts = {ShardKey(ShardId(2)), ShardKey(ShardId(4))}});
  ASSERT_TRUE(files.Remove(ShardId(1)).ok()) << "there are no files yet";
  RowRun run;
  for (const uint32_t shard : {0u, 1u, 2u, 3u}) run.Add(RowKey(ShardId(shard), TableId(1), 7), 4);
  ASSERT_TRUE(files.Write(run, {}).ok());
  for (const uint32_t shard : {1u, 3u, 5u}) {
    const Status removed = files.Remove(ShardId(shard));
    ASSERT_TRUE(removed.ok()) << removed;
  }
  EXPECT_EQ(ShardsIn(files), (std::set<ShardId>{ShardId(0), ShardId(2)}));
}

}  // namespace
}  // namespace dt::server
