#include "server/storage/saver.h"

#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "test/unit/server/storage/tier_parts.h"

namespace dt::server {
namespace {

class SaverTest : public ::testing::Test {
 protected:
  std::unique_ptr<CheckpointTask> NewTask(const std::string& name) {
    auto task = std::make_unique<CheckpointTask>();
    task->name = name;
    task->folder = parts_.path("checkpoint/" + name);
    task->notes.emplace_back(std::string(1, '\0'), "a note");
    return task;
  }
  // Runs until the checkpoint is finished.
  std::unique_ptr<CheckpointTask> Finish() {
    for (;;) {
      saver_.Work();
      if (auto task = saver_.TakeSaved()) return task;
      if (saver_.walking() && parts_.below().runs().empty()) continue;
      DiskThreads::Done done = parts_.Next();
      if (done.made != nullptr) {
        saver_.OnMade(std::move(done.made));
      } else {
        parts_.below().OnWritten(done.written);
      }
    }
  }
  // The first value of each row in a checkpoint.
  static std::map<Key, float> RowsIn(const std::string& folder) {
    std::map<Key, float> rows;
    const auto db = *RowsDb::OpenToRead(folder);
    const auto at = db->Read();
    for (Status s = at->Seek({}); s.ok() && at->valid(); s = at->Next()) {
      if (at->key().size() != RowKey::kBytes) continue;
      std::memcpy(&rows[RowKey(at->key()).key()], at->value().data(), sizeof(float));
    }
    return rows;
  }

  TierParts parts_;
  Saver saver_{parts_.shards(), parts_.below(), parts_.disk()};
};

TEST_F(SaverTest, SavesEveryRow) {
  parts_.PushRows(300);
  saver_.Begin(NewTask("rows"));
  const auto task = Finish();
  ASSERT_TRUE(task->status.ok()) << task->status;
  EXPECT_FALSE(task->files.empty());
  EXPECT_EQ(RowsIn(task->folder).size(), 300u);
  EXPECT_FALSE(saver_.saving());
}

TEST_F(SaverTest, ARowThatChangesAfterTheCutIsSavedAsItWas) {
  parts_.PushRows(3);
  saver_.Begin(NewTask("rows"));
  parts_.PushRow(1, 5);
  EXPECT_EQ(RowsIn(Finish()->folder), (std::map<Key, float>{{0, -1}, {1, -1}, {2, -1}}));
}

TEST_F(SaverTest, ARowThatIsMadeAfterTheCutIsNotSaved) {
  parts_.PushRows(1);
  saver_.Begin(NewTask("rows"));
  parts_.PushRow(1, 1);
  EXPECT_EQ(RowsIn(Finish()->folder).size(), 1u);
}

TEST_F(SaverTest, TheNextCheckpointHasTheChangesBetween) {
  parts_.PushRows(2);
  saver_.Begin(NewTask("first"));
  Finish();
  parts_.PushRow(1, 5);
  saver_.Begin(NewTask("second"));
  EXPECT_EQ(RowsIn(Finish()->folder), (std::map<Key, float>{{0, -1}, {1, -6}}));
}

TEST_F(SaverTest, ASecondOneAtATimeFails) {
  parts_.PushRows(1);
  saver_.Begin(NewTask("first"));
  saver_.Begin(NewTask("second"));
  const auto refused = saver_.TakeSaved();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->status.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(Finish()->status.ok());
}

TEST_F(SaverTest, OneThatFailsIsToldAtOnceAndTheWalkGoesOn) {
  parts_.PushRows(1);
  saver_.Begin(NewTask("rows"));
  saver_.FailUnlessGiven(Unavailable("the disk is full"));
  const auto task = saver_.TakeSaved();
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->status.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(saver_.saving());
  saver_.Work();
  EXPECT_FALSE(saver_.saving());
  EXPECT_EQ(parts_.table().rows_of_all().first_changes(), nullptr);
}

TEST_F(SaverTest, WhenTheDiskHasAllNothingFailsItAnyMore) {
  parts_.PushRows(1);
  saver_.Begin(NewTask("rows"));
  saver_.Work();
  saver_.FailUnlessGiven(Unavailable("the disk is full"));
  EXPECT_TRUE(Finish()->status.ok());
}

TEST_F(SaverTest, AShardThatComesMeanwhileIsNotSaved) {
  parts_.PushRows(3);
  parts_.Remove(ShardId(1));
  saver_.Begin(NewTask("rows"));
  parts_.shards().Add(ShardId(1)).table(0).SetAbsent(99, std::vector<float>(TierParts::kDim));
  EXPECT_EQ(RowsIn(Finish()->folder).size(), 3u);
}

}  // namespace
}  // namespace dt::server
