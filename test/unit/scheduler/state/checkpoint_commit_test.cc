// Goal: a checkpoint is committed or abandoned as required, in whatever order answers, writes and
// deaths arrive. Method: all orders are tried.
#include "scheduler/state/checkpoint_commit.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

constexpr uint64_t kOrder = 31;
constexpr Step kStep = 7;
const ProcessId kWorker(9);

RowsWrittenMessage RowsOf(ProcessId id) {
  return {kOrder, {{fmt::format("rows-{}", id.value()), 1, 2}}};
}
SaveDone AnswerOf(ProcessId id, bool writing) {
  return {{{fmt::format("answer-{}", id.value()), 1, 2}}, writing};
}
std::vector<std::string> NamesOf(const std::vector<CheckpointFile>& files) {
  std::vector<std::string> names;
  for (const CheckpointFile& file : files) names.push_back(file.name);
  return names;
}

// Two servers and a worker save. Replays events of a server, and checks the outcome.
class Play {
 public:
  enum What { kAnswers, kWrites, kDies };
  struct Event {
    What what = kAnswers;
    uint32_t server = 1;
    friend auto operator<=>(const Event&, const Event&) = default;
  };

  Play() {
    commit_.Begin(kOrder, kStep, true);
    answers_[kWorker] = AnswerOf(kWorker, false);
  }
  void Happens(const Event& event) {
    const ProcessId id(event.server);
    switch (event.what) {
      case kAnswers:
        answers_[id] = AnswerOf(id, true);
        if (answers_.size() == 3) commit_.Cut(Manifest{.job = "j"}, answers_);
        break;
      case kWrites:
        if (dead_.contains(id)) break;  // A dead server cannot write.
        commit_.OnRowsWritten(id, RowsOf(id));
        written_.insert(id);
        break;
      case kDies:
        commit_.OnLost(id, answers_.contains(id));
        if (answers_.contains(id) && !written_.contains(id)) dead_.insert(id);
        break;
    }
    const bool over = answers_.size() == 3 && written_.size() + dead_.size() == 2;
    std::optional<CheckpointCommit::Settled> settled = commit_.TakeSettled();
    EXPECT_EQ(settled.has_value(), over && !settled_.has_value());
    if (settled.has_value()) settled_ = std::move(settled);
  }
  void ExpectItsEnd() const {
    EXPECT_TRUE(commit_.idle());
    ASSERT_TRUE(settled_.has_value());
    EXPECT_EQ(settled_->abandoned, !dead_.empty());
    EXPECT_TRUE(settled_->best);
    EXPECT_EQ(settled_->manifest.job, "j");
    if (!dead_.empty()) return;
    EXPECT_EQ(NamesOf(settled_->manifest.files),
              (std::vector<std::string>{"answer-1", "answer-2", "answer-9", "rows-1", "rows-2"}));
  }

 private:
  CheckpointRecord record_;
  CheckpointCommit commit_{record_};
  std::map<ProcessId, SaveDone> answers_;
  std::set<ProcessId> written_, dead_;
  std::optional<CheckpointCommit::Settled> settled_;
};

std::string TextOf(std::span<const Play::Event> events) {
  std::string text;
  for (const Play::Event& event : events) {
    constexpr const char* kWords[] = {"answers", "writes", "dies"};
    text += fmt::format("server {} {}; ", event.server, kWords[event.what]);
  }
  return text;
}

// True if every server writes only after it has answered.
bool CanBe(std::span<const Play::Event> events) {
  for (const uint32_t server : {1u, 2u}) {
    const auto at = [&](Play::What what) {
      return std::ranges::find(events, Play::Event{what, server});
    };
    if (at(Play::kWrites) < at(Play::kAnswers)) return false;
  }
  return true;
}

int TryAllOrdersOf(std::vector<Play::Event> events) {
  std::ranges::sort(events);
  int tried = 0;
  do {
    if (!CanBe(events)) continue;
    SCOPED_TRACE(TextOf(events));
    Play play;
    for (const Play::Event& event : events) play.Happens(event);
    play.ExpectItsEnd();
    ++tried;
  } while (std::ranges::next_permutation(events).found);
  return tried;
}

TEST(CheckpointCommit, IsCompleteInWhateverOrderAnswersAndRowsArrive) {
  EXPECT_EQ(TryAllOrdersOf(
                {{Play::kAnswers, 1}, {Play::kAnswers, 2}, {Play::kWrites, 1}, {Play::kWrites, 2}}),
            6);
}

// A checkpoint is abandoned if and only if a server dies after its answer and before its rows are
// written.
TEST(CheckpointCommit, IsAbandonedOnlyIfItsContentIsGone) {
  EXPECT_EQ(TryAllOrdersOf({{Play::kAnswers, 1},
                            {Play::kAnswers, 2},
                            {Play::kWrites, 1},
                            {Play::kWrites, 2},
                            {Play::kDies, 1}}),
            30);
  EXPECT_EQ(TryAllOrdersOf({{Play::kAnswers, 1},
                            {Play::kAnswers, 2},
                            {Play::kWrites, 1},
                            {Play::kWrites, 2},
                            {Play::kDies, 1},
                            {Play::kDies, 2}}),
            180);
}

class CommitTest : public ::testing::Test {
 protected:
  CheckpointRecord record_;
  CheckpointCommit commit_{record_};
};

TEST_F(CommitTest, WithoutRowsToWriteItIsCompleteAtTheCut) {
  commit_.Begin(kOrder, kStep, false);
  EXPECT_FALSE(commit_.TakeSettled().has_value());
  commit_.Cut({}, {{ProcessId(1), AnswerOf(ProcessId(1), false)}});
  const auto settled = commit_.TakeSettled();
  ASSERT_TRUE(settled.has_value());
  EXPECT_FALSE(settled->abandoned);
  EXPECT_FALSE(settled->best);
  EXPECT_FALSE(commit_.TakeSettled().has_value()) << "it is told once";
}

TEST_F(CommitTest, ADeathWithoutRowsToWriteCostsNothing) {
  commit_.Begin(kOrder, kStep, false);
  commit_.OnLost(ProcessId(1), true);
  commit_.Cut({}, {{ProcessId(1), AnswerOf(ProcessId(1), false)}});
  EXPECT_FALSE(commit_.TakeSettled()->abandoned);
}

TEST_F(CommitTest, ReportsThatAreNotDueChangeNothing) {
  const ProcessId server(1), other(2);
  commit_.OnRowsWritten(server, RowsOf(server));
  EXPECT_TRUE(commit_.idle());
  commit_.Begin(kOrder, kStep, false);
  commit_.OnRowsWritten(server, {kOrder - 1, {{"of an earlier one", 1, 2}}});
  commit_.Cut({}, {{server, AnswerOf(server, true)}});
  commit_.OnRowsWritten(other, RowsOf(other));
  EXPECT_FALSE(commit_.TakeSettled().has_value()) << "the server has not written";
  commit_.OnRowsWritten(server, RowsOf(server));
  commit_.OnRowsWritten(server, RowsOf(server));
  EXPECT_EQ(NamesOf(commit_.TakeSettled()->manifest.files),
            (std::vector<std::string>{"answer-1", "rows-1"}));
  commit_.OnRowsWritten(server, RowsOf(server));
  EXPECT_TRUE(commit_.idle());
}

// The order to save is given anew if a worker is lost before the cut.
TEST_F(CommitTest, AWorkerThatGoesIsMissedOnlyWhileItWrites) {
  for (const bool written : {false, true}) {
    commit_.Begin(kOrder, kStep, false);
    commit_.OnWorkerGone(kWorker);
    commit_.Cut({}, {{kWorker, AnswerOf(kWorker, true)}});
    EXPECT_TRUE(commit_.writes(kWorker));
    if (written) commit_.OnRowsWritten(kWorker, RowsOf(kWorker));
    commit_.OnWorkerGone(kWorker);
    EXPECT_FALSE(commit_.writes(kWorker));
    EXPECT_EQ(commit_.TakeSettled()->abandoned, !written);
  }
}

// With copies the job goes on without a server, but nobody else writes its rows.
TEST_F(CommitTest, WithoutAServerItIsAbandonedUnlessItsRowsAreWritten) {
  enum { kNothing, kAnswered, kCut, kWritten };
  for (const int done : {kNothing, kAnswered, kCut, kWritten}) {
    SCOPED_TRACE(done);
    const ProcessId server(1), other(2);
    commit_.Begin(kOrder, kStep, false);
    std::map<ProcessId, SaveDone> answers = {{other, AnswerOf(other, true)}};
    if (done >= kAnswered) answers[server] = AnswerOf(server, true);
    if (done >= kCut) commit_.Cut({}, answers);
    if (done >= kWritten) commit_.OnRowsWritten(server, RowsOf(server));
    commit_.OnRemoved(server, true);
    if (done < kCut) commit_.Cut({}, answers);
    EXPECT_FALSE(commit_.TakeSettled().has_value()) << "the other one still writes";
    commit_.OnRowsWritten(other, RowsOf(other));
    const auto settled = commit_.TakeSettled();
    ASSERT_TRUE(settled.has_value());
    EXPECT_EQ(settled->abandoned, done < kWritten);
    EXPECT_TRUE(commit_.idle());
  }
}

// Its place in a chain is taken before another one answers, which then writes its shards, too.
TEST_F(CommitTest, RowsThatAnotherWritesOnceMoreAreAbandoned) {
  const ProcessId server(1), other(2);
  commit_.Begin(kOrder, kStep, false);
  commit_.OnRowsWritten(server, RowsOf(server));
  commit_.OnRemoved(server, true);
  commit_.Cut({}, {{server, AnswerOf(server, true)}, {other, AnswerOf(other, true)}});
  commit_.OnRowsWritten(other, RowsOf(other));
  EXPECT_TRUE(commit_.TakeSettled()->abandoned);
}

// It comes back with its log, or was only silent: until it has written, no other checkpoint begins.
TEST_F(CommitTest, AServerThatHasLostSomeShardsIsWaitedFor) {
  for (const bool answered : {false, true}) {
    const ProcessId server(1);
    commit_.Begin(kOrder, kStep, false);
    const std::map<ProcessId, SaveDone> answers = {{server, AnswerOf(server, true)}};
    if (answered) commit_.Cut({}, answers);
    commit_.OnRemoved(server, false);
    if (!answered) commit_.Cut({}, answers);
    EXPECT_FALSE(commit_.TakeSettled().has_value());
    commit_.OnRowsWritten(server, RowsOf(server));
    EXPECT_TRUE(commit_.TakeSettled()->abandoned);
  }
}

TEST_F(CommitTest, RemovalWhileNothingIsSavedChangesNothing) {
  commit_.OnRemoved(ProcessId(1), true);
  EXPECT_TRUE(commit_.idle());
  commit_.Begin(kOrder, kStep, false);
  commit_.Cut({}, {{ProcessId(2), AnswerOf(ProcessId(2), false)}});
  EXPECT_FALSE(commit_.TakeSettled()->abandoned);
}

TEST_F(CommitTest, ADeathWhileNothingIsSavedChangesNothing) {
  commit_.OnLost(ProcessId(1), true);
  EXPECT_TRUE(commit_.idle());
  commit_.Begin(kOrder, kStep, false);
  commit_.Cut({}, {{ProcessId(1), AnswerOf(ProcessId(1), true)}});
  commit_.OnRowsWritten(ProcessId(1), RowsOf(ProcessId(1)));
  EXPECT_FALSE(commit_.TakeSettled()->abandoned);
}

}  // namespace
}  // namespace dt::scheduler
