// Goal: the parts of a copied shard are read back from the log as they were written; a replay
// takes the parts of the last copy that began in the log, and nothing of one whose beginning is
// not there. Method: real files; a fake taker of parts.
#include "server/log/log_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/log/logged_part.h"
#include "test/support/push_maker.h"
#include "test/support/scratch_folder.h"
#include "test/support/shard_sets.h"

namespace dt::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kShards = 4;
const ShardId kMine{1}, kMoved{2};  // Moved: it was here when the log was written.
const std::vector<TableSpec> kTables = {test::SimpleTable("t", 2)};

Frame Text(std::string_view text) { return Frame::CopyOf(std::as_bytes(std::span(text))); }

CopyRequest PartOf(ShardId shard, uint64_t session, uint64_t number) {
  CopyRequest part;
  part.stamp = test::kFirstStamp;
  part.from = ProcessId(2);
  part.shard = shard;
  part.session = session;
  part.number = number;
  part.rows = Text("rows");
  return part;
}

std::pair<Frame, Frame> FramesOf(const RecordBytes& part) {
  return {Text(part.head), Frame::CopyOf(part.gradients)};
}

TEST(LoggedPart, IsReadBackAsItWasWritten) {
  CopyRequest part = PartOf(kMine, 7, 3);
  part.end = true;
  part.position = 12;
  part.now = 9;
  part.turns = {{ProcessId(3), ViewNumber(2), 4, 8, 9}};
  part.view = ViewNumber(2);
  part.settled = 7;
  part.applied = {{8, 0, 5}};
  part.life_bytes = {3};
  part.lives = Text("old");
  const auto [head, frames] = FramesOf(EncodePart(part));
  ASSERT_TRUE(IsPart(head));
  const Result<CopyRequest> back = DecodePart(head, frames, kTables);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->shard, part.shard);
  EXPECT_EQ(back->session, part.session);
  EXPECT_EQ(back->number, part.number);
  EXPECT_EQ(back->position, part.position);
  EXPECT_EQ(back->now, part.now);
  EXPECT_EQ(back->turns, part.turns);
  EXPECT_EQ(back->view, part.view);
  EXPECT_EQ(back->settled, part.settled);
  EXPECT_EQ(back->applied, part.applied);
  EXPECT_EQ(back->life_bytes, part.life_bytes);
  EXPECT_TRUE(back->end);
  EXPECT_TRUE(std::ranges::equal(back->rows.bytes(), part.rows.bytes()));
  EXPECT_TRUE(std::ranges::equal(back->lives.bytes(), part.lives.bytes()));
}

TEST(LoggedPart, IsMalformedIfAnythingIsMissing) {
  const auto [head, frames] = FramesOf(EncodePart(PartOf(kMine, 7, 3)));
  for (size_t words = 1; words < head.size() / 8; ++words) {
    const Frame cut = Frame::CopyOf(head.bytes().first(words * 8));
    EXPECT_EQ(DecodePart(cut, frames, kTables).status().code(), StatusCode::kOutOfRange) << words;
  }
  for (size_t bytes = 0; bytes < frames.size(); ++bytes) {
    const Frame cut = Frame::CopyOf(frames.bytes().first(bytes));
    EXPECT_FALSE(DecodePart(head, cut, kTables).ok()) << bytes;
  }
  const RecordBytes record = Encode(kMine, {.position = 1, .kind = RecordKind::kTime});
  EXPECT_FALSE(IsPart(Text(record.head)));
}

class LogReplayTest : public ::testing::Test {
 protected:
  LogReplayTest() : shards_(test::SetOf(kTables, 1, kShards, {ShardId(0), kMine})) {}

  void Write(const std::vector<RecordBytes>& entries) {
    auto log = RecordLog::Open({.dir = folder_.path()}, Generation(1), 1);
    ASSERT_TRUE(log.ok()) << log.status();
    for (const RecordBytes& entry : entries) (*log)->Append(entry);
    ASSERT_TRUE((*log)->Commit().ok());
  }
  static RecordBytes Time(ShardId shard, Position position) {
    return Encode(shard, {.position = position, .kind = RecordKind::kTime, .elapsed = seconds(1)});
  }
  Status Replay(const LogReplay::TakePart& take) {
    DT_TRY(const auto replay,
           LogReplay::Open({.dir = folder_.path(), .base = LogLocation::Base{}}, shards_));
    for (;;) {
      DT_TRY(const bool more, replay->Some(now_, shards_, take));
      if (!more) return replay->Finish(shards_).status();
      EXPECT_TRUE(replay->stalled());
      now_ += seconds(1);
    }
  }
  // Session and number of those taken.
  Result<bool> Take(CopyRequest& part) {
    taken_.emplace_back(part.session, part.number);
    return true;
  }

  const test::ScratchFolder folder_;
  ShardSet shards_;
  TimePoint now_{};
  std::vector<std::pair<uint64_t, uint64_t>> taken_;
};

TEST_F(LogReplayTest, FollowsRecordsAndTakesThePartsOfACopyThatBeganHere) {
  Write({Time(ShardId(0), 1), EncodePart(PartOf(kMine, 5, 1)), EncodePart(PartOf(kMine, 7, 0)),
         EncodePart(PartOf(kMoved, 6, 0)), EncodePart(PartOf(kMine, 5, 2)),
         EncodePart(PartOf(kMine, 7, 1)), Time(kMoved, 1), Time(ShardId(0), 2)});
  const Status replayed = Replay([&](CopyRequest& part) { return Take(part); });
  ASSERT_TRUE(replayed.ok()) << replayed;
  EXPECT_THAT(taken_, ElementsAre(std::pair(7, 0), std::pair(7, 1)));
  EXPECT_EQ(shards_.Find(ShardId(0))->position(), 2u);
}

TEST_F(LogReplayTest, APartThatHasToWaitIsGivenAgainForAMinute) {
  Write({EncodePart(PartOf(kMine, 7, 0)), EncodePart(PartOf(kMine, 7, 1))});
  int refusals = 3;
  const Status replayed = Replay([&](CopyRequest& part) -> Result<bool> {
    if (refusals-- > 0) return false;
    return Take(part);
  });
  ASSERT_TRUE(replayed.ok()) << replayed;
  EXPECT_THAT(taken_, ElementsAre(std::pair(7, 0), std::pair(7, 1)));
  const Status never = Replay([](CopyRequest&) -> Result<bool> { return false; });
  EXPECT_EQ(never.code(), StatusCode::kDataLoss);
  EXPECT_THAT(ToText(never), HasSubstr("it waits for rows on disk"));
  EXPECT_GE(now_, TimePoint() + seconds(60));
}

TEST_F(LogReplayTest, ARecordOutOfOrderIsDamage) {
  Write({Time(ShardId(0), 1), Time(ShardId(0), 3)});
  const Status replayed = Replay([&](CopyRequest& part) { return Take(part); });
  EXPECT_EQ(replayed.code(), StatusCode::kDataLoss);
  EXPECT_THAT(ToText(replayed), HasSubstr(folder_.path()));
}

}  // namespace
}  // namespace dt::server
