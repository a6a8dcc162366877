// Goal: each command does its work in pieces, and reports when it has finished. Method: no threads
// and no sockets; the test runs the commands and sets the time. Every gradient is 1, the rate is 1
// and rows start at 0, so a row is minus the number of its pushes.
#include "server/service/commands.h"

#include <semaphore>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/push_maker.h"
#include "test/support/scratch_folder.h"
#include "test/support/shard_sets.h"
#include "test/support/tiered_shards.h"

namespace dt::server {
namespace {

using test::Grouping;
using test::RowMap;
using ::testing::HasSubstr;

constexpr uint32_t kShards = 4;
constexpr Duration kTimeout = seconds(20);
const Stamp& kStamp = test::kFirstStamp;
const TimePoint kNow = SystemClock().Now();

class Commands : public ::testing::Test {
 protected:
  explicit Commands(uint32_t dim = 2) {
    TableSpec spec = test::SimpleTable("t", dim);
    spec.init = {InitKind::kZeros, 0};
    tables_ = {spec};
  }
  std::unique_ptr<ExecutorCommand> Begin(std::optional<LogLocation> log = {}) const {
    return BeginCommand(test::SetOf(tables_, 1, kShards, test::AllShards(kShards)),
                        {folder_ / "rows", 1 << 30}, std::move(log));
  }
  LogLocation Log(std::optional<LogLocation::Base> base = {}) const {
    return {folder_.path(), 0, false, std::move(base)};
  }
  // Runs a command that needs only one piece.
  ExecutorAnswer Do(const std::unique_ptr<ExecutorCommand>& command) {
    auto answer = command->Work(kNow, state_);
    EXPECT_TRUE(answer.has_value());
    return answer.has_value() ? *std::move(answer) : ExecutorAnswer{Internal("silent")};
  }
  std::unique_ptr<ExecutorCommand> Save(Step step) const {
    return SaveCommand(step, {folder_ / "saved", ProcessId(1), 0}, seconds(5));
  }
  void Push(Step step, Key keys = 3) {
    RowMap rows;
    for (Key key = 0; key < keys; ++key) rows[{0, key}] = std::vector<float>(tables_[0].dim, 1);
    PushRequest push =
        Grouping(tables_, kShards, test::AllShards(kShards), rows).Push(1, kStamp, step);
    ASSERT_TRUE(state_.shards()->Push(std::move(push)).ok());
    const Status logged = state_.log() != nullptr ? state_.log()->Commit() : OkStatus();
    ASSERT_TRUE(logged.ok()) << logged;
  }
  float Value(Key key) {
    const KeyGroup group{ShardOf(tables_[0].id, key, kShards), 0, 1};
    const Frame row = state_.shards()->Gather(PullMode::kTrain, {&group, 1}, {&key, 1});
    return row.as<float>()[0];
  }
  // The result of a save, after the disk has finished.
  Status Saved() {
    const TimePoint deadline = SystemClock().Now() + kTimeout;
    while (SystemClock().Now() < deadline) {
      if (!state_.tier()->busy()) static_cast<void>(woken_.try_acquire_for(milliseconds(50)));
      state_.tier()->Work();
      if (const auto task = state_.tier()->TakeSaved()) return task->status;
    }
    return Timeout("the save does not end");
  }

  const test::ScratchFolder folder_;
  std::vector<TableSpec> tables_;
  std::counting_semaphore<> woken_{0};
  ExecutorState state_{[this] { woken_.release(); }};
};

TEST_F(Commands, BeforeTheJobBeginsThereIsNothingToSaveLoadOrReport) {
  EXPECT_EQ(Do(Save(0)).status.code(), StatusCode::kInternal);
  EXPECT_EQ(Do(LoadCommand({folder_.path(), 0, Generation(1)})).status.code(),
            StatusCode::kInternal);
  EXPECT_EQ(Do(ReportCommand()).status.code(), StatusCode::kInternal);
  EXPECT_TRUE(Do(CutCommand(1)).status.ok()) << "there is no log";
}

TEST_F(Commands, RequestsAreRefusedWhileRowsAreReplaced) {
  EXPECT_TRUE(Begin()->replaces_rows());
  EXPECT_TRUE(LoadCommand({"", 0, Generation(1)})->replaces_rows());
  EXPECT_FALSE(Save(0)->replaces_rows());
  EXPECT_FALSE(CutCommand(0)->replaces_rows());
  EXPECT_FALSE(ReportCommand()->replaces_rows());
}

TEST_F(Commands, WhatWasSavedAtAStepIsLoaded) {
  ASSERT_TRUE(Do(Begin()).status.ok());
  Push(0);
  ASSERT_TRUE(Do(Save(1)).status.ok());
  Push(1);  // This push is not in the checkpoint.
  ASSERT_TRUE(Saved().ok());
  ASSERT_TRUE(Do(LoadCommand({folder_ / "saved", 1, Generation(2)})).status.ok());
  EXPECT_EQ(state_.shards()->clock(), 1u);
  EXPECT_EQ(Value(2), -1);
}

TEST_F(Commands, AnExecutorWithoutShardsSavesLoadsAndReports) {
  const auto none = test::SetOf(tables_, 1, kShards, {});
  ASSERT_TRUE(Do(BeginCommand(none, {folder_ / "rows", 1 << 30})).status.ok());
  for (Step step = 1; step <= 2; ++step) {
    const std::string folder = folder_ / ("saved-" + std::to_string(step));
    test::TieredShards all(tables_, kShards, test::AllShards(kShards), folder_ / "all", 1 << 30);
    ASSERT_TRUE(all.Push(0, 0, {{7, {1, 1}}}));
    ASSERT_TRUE(all.Save(step, {folder, ProcessId(2), 0}).ok());
    ASSERT_TRUE(Do(SaveCommand(step, {folder, ProcessId(1), 0}, seconds(5))).status.ok());
    ASSERT_TRUE(Saved().ok());
    const ExecutorAnswer loaded = Do(LoadCommand({folder, step, Generation(2)}));
    ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  }
  const ExecutorAnswer report = Do(ReportCommand());
  ASSERT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(report.tables[0].rows, 0u);
}

TEST_F(Commands, ASaveWaitsForItsStepAndSaysWhatIsMissing) {
  ASSERT_TRUE(Do(Begin()).status.ok());
  Push(0);
  const auto save = Save(2);
  EXPECT_FALSE(save->Work(kNow, state_).has_value());
  EXPECT_GT(save->timeout(), Duration::zero());
  EXPECT_FALSE(save->Work(kNow + seconds(4), state_).has_value());
  const auto late = save->Work(kNow + seconds(5), state_);
  ASSERT_TRUE(late.has_value());
  EXPECT_THAT(ToText(late->status), HasSubstr("waits for every slice of step 1"));
  EXPECT_FALSE(state_.tier()->saving());
}

TEST_F(Commands, ASaveThatWaitedGoesOnWhenItsStepIsThere) {
  ASSERT_TRUE(Do(Begin()).status.ok());
  const auto save = Save(1);
  EXPECT_FALSE(save->Work(kNow, state_).has_value());
  Push(0);
  const auto answer = save->Work(kNow + seconds(9), state_);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->status.ok()) << answer->status;
  EXPECT_TRUE(state_.tier()->saving());
  EXPECT_TRUE(Saved().ok());
}

TEST_F(Commands, AReportAppliesWhatIsHeld) {
  ASSERT_TRUE(Do(Begin()).status.ok());
  Push(0, 5);
  const ExecutorAnswer report = Do(ReportCommand());
  ASSERT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(report.tables[0].rows, 5u);
  EXPECT_EQ(Value(4), -1);
}

TEST_F(Commands, AReportHasNoSumOfAShardThatIsStillCopied) {
  ASSERT_TRUE(Do(Begin()).status.ok());
  const ProcessId self = state_.shards()->self(), other(8), third(9);
  ShardMap map = state_.shards()->view().map;
  map.version = MapVersion(map.version.value() + 1);
  for (Chain& chain : map.chains) chain = {map.version, {self, other}};
  map.chains.back() = {map.version, {other, third}, {self}};
  for (const ProcessId id : {other, third}) map.servers.push_back({id, {"inproc://other"}});
  state_.SetMap(kNow, map);
  const ShardId last(map.shards() - 1);
  const auto is_syncing = [&] {
    const Shard* const shard = state_.shards()->Find(last);
    return shard != nullptr && shard->place().syncing;
  };
  for (int turn = 0; turn < 100 && !is_syncing(); ++turn) {
    state_.shards()->RemoveRows();
    state_.tier()->Work();
    state_.FollowMap(kNow);
  }
  ASSERT_TRUE(is_syncing());
  const ExecutorAnswer report = Do(ReportCommand());
  ASSERT_TRUE(report.status.ok()) << report.status;
  ASSERT_EQ(report.copies.size(), map.shards() - 1);
  for (const CopySum& sum : report.copies) EXPECT_NE(sum.shard, last);
}

TEST_F(Commands, ALogIsBegunReadBackAndCutWhereACheckpointWasSaved) {
  EXPECT_EQ(Do(Begin(Log())).first_segment, 1u);
  Push(0);
  Push(1);
  ASSERT_TRUE(Do(Save(2)).status.ok());
  ASSERT_TRUE(Saved().ok());
  Push(2);
  EXPECT_EQ(Do(CutCommand(1)).first_segment, 1u) << "step 1 is in it";
  EXPECT_EQ(Do(CutCommand(2)).first_segment, 2u);

  EXPECT_EQ(Do(Begin(Log(LogLocation::Base{}))).first_segment, 1u) << "from the first push on";
  state_.shards()->Advance(3);
  EXPECT_EQ(Value(0), -3);

  EXPECT_EQ(Do(Begin(Log(LogLocation::Base{2, folder_ / "saved", 2}))).first_segment, 2u);
  EXPECT_EQ(Value(0), -2) << "the checkpoint";
  state_.shards()->Advance(3);
  EXPECT_EQ(Value(0), -3) << "and the log";
  const Position position = state_.shards()->shards()[0].position();

  // The checkpoint was completed while the server was away, so its log is not cut yet.
  EXPECT_EQ(Do(Begin(Log(LogLocation::Base{2, folder_ / "saved", 1}))).first_segment, 1u);
  state_.shards()->Advance(3);
  EXPECT_EQ(Value(0), -3) << "what the checkpoint holds is passed over";
  EXPECT_EQ(state_.shards()->shards()[0].position(), position);
}

TEST_F(Commands, ALogThatCannotBeReadBackIsNotKept) {
  ASSERT_TRUE(Do(Begin(Log())).status.ok());
  Push(0);
  const ExecutorAnswer begun = Do(Begin(Log(LogLocation::Base{0, "", 7})));
  EXPECT_FALSE(begun.status.ok());
  EXPECT_EQ(begun.first_segment, 0u);
  EXPECT_EQ(state_.log(), nullptr);
}

class CommandsOfLargeRows : public Commands {
 protected:
  CommandsOfLargeRows() : Commands(1024) {}
};

TEST_F(CommandsOfLargeRows, ALongLogIsReadBackInPieces) {
  ASSERT_TRUE(Do(Begin(Log())).status.ok());
  for (Step step = 0; step < 3; ++step) Push(step, 3000);  // Each push has 12 MB.
  const auto begin = Begin(Log(LogLocation::Base{}));
  EXPECT_FALSE(begin->Work(kNow, state_).has_value()) << "16 MiB are a piece";
  EXPECT_EQ(begin->timeout(), Duration::zero()) << "there is more to do";
  EXPECT_EQ(state_.log(), nullptr) << "nothing is written behind what is not read";
  std::optional<ExecutorAnswer> begun;
  for (int pieces = 1; !begun.has_value(); ++pieces) {
    ASSERT_LT(pieces, 5);
    begun = begin->Work(kNow, state_);
  }
  EXPECT_TRUE(begun->status.ok()) << begun->status;
  state_.shards()->Advance(3);
  EXPECT_EQ(Value(2999), -3);
}

}  // namespace
}  // namespace dt::server
