// Goal: pushes of asynchronous workers are applied once each and in the order of their sender,
// however they arrive, and a pull waits exactly for the steps that the staleness requires. Method:
// written-out sequences, and a random network that delays, repeats and reorders pieces, compared
// with a plain list of applied pushes.
#include <map>

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "server/shard/shard_clock.h"

namespace dt::server {
namespace {

// Each worker pushes the slice of every step that has its number, if it says no other.
struct Sent {
  uint32_t worker = 0;
  Step step = 0;
  uint32_t piece = 0, pieces = 1;
  Step first_step = 0;  // The order's; the worker pushes its steps one after the other.
  std::optional<SliceIndex> slice = {};
  std::optional<uint64_t> number = {};
  Step settled = 0;
  ViewNumber view = ViewNumber(1);
};

Contribution Of(const Sent& sent) {
  Contribution part;
  part.step = sent.step;
  part.piece = sent.piece;
  part.pieces = sent.pieces;
  part.slice = sent.slice.value_or(sent.worker);
  part.turn = {.worker = ProcessId(sent.worker),
               .view = sent.view,
               .order = sent.first_step,
               .number = sent.number.value_or(sent.step - sent.first_step),
               .clock = sent.step + 1,
               .settled = sent.settled};
  return part;
}

class AsyncClockTest : public ::testing::Test {
 protected:
  static ClockState Start(uint32_t workers, Step step) {
    ClockState state{.view = ViewNumber(1), .settled = step};
    for (uint32_t w = 1; w <= workers; ++w) {
      state.turns.push_back(
          {.worker = ProcessId(w), .view = state.view, .order = step, .clock = step});
    }
    return state;
  }
  // Notes which steps are applied, by worker, and which pieces are recorded.
  struct Notes : ShardUpdater {
    bool Prepare(std::span<const Contributions> pushes) override {
      EXPECT_EQ(pushes.size(), 1u);
      return rows_there;
    }
    void RecordContribution(const Contribution& piece) override {
      ++recorded[{piece.turn.worker.value(), piece.turn.order, piece.step, piece.piece}];
    }
    void RecordComplete(Step) override { ADD_FAILURE() << "only for synchronous steps"; }
    void Update(const UpdateInfo& info, std::span<const Contributions> pushes) override {
      EXPECT_TRUE(rows_there);
      const Contributions& push = pushes[0];
      for (size_t p = 0; p < push.size(); ++p) {
        EXPECT_EQ(push[p]->piece, p);
        const Contribution& piece = *push[p];
        const auto key =
            std::tuple(piece.turn.worker.value(), piece.turn.order, piece.step, piece.piece);
        EXPECT_EQ(recorded[key], 1) << "recorded once, and before";
      }
      EXPECT_EQ(push[0]->step, info.step);
      applied[push[0]->turn.worker.value()].push_back(push[0]->step);
    }
    void RecordWorkers(ViewNumber view, std::span<const ProcessId>) override {
      views.push_back(view);
    }
    void MoveTime(Step) override {}
    std::vector<ViewNumber> views;
    std::map<uint32_t, std::vector<Step>> applied;
    std::map<std::tuple<uint32_t, Step, Step, uint32_t>, int> recorded;
    bool rows_there = true;
  };
  StatusCode Take(const Sent& sent) { return clock_->Take(Of(sent), notes_).code(); }
  bool MayPull(Step step) const {
    return clock_->MayPull(PullMode::kTrain, step) == ShardClock::Pullable::kYes;
  }
  static constexpr StatusCode kOk = StatusCode::kOk, kBusy = StatusCode::kResourceExhausted,
                              kMalformed = StatusCode::kOutOfRange,
                              kStale = StatusCode::kFailedPrecondition;

  static constexpr Step kAhead = 16;  // At most this many pushes of a worker wait.
  std::unique_ptr<ShardClock> clock_ = MakeAsyncClock(3, Start(2, 0));
  Notes notes_;
  std::map<uint32_t, std::vector<Step>>& applied_ = notes_.applied;
};

TEST_F(AsyncClockTest, APushIsAppliedAtOnceAndOnce) {
  EXPECT_EQ(Take({.worker = 1, .step = 0}), kOk);
  EXPECT_EQ(Take({.worker = 1, .step = 0}), kOk);
  EXPECT_EQ(Take({.worker = 2, .step = 0}), kOk);
  EXPECT_EQ(applied_[1], std::vector<Step>{0});
  EXPECT_EQ(applied_[2], std::vector<Step>{0});
  EXPECT_EQ(clock_->held_bytes(), 0u);
}

TEST_F(AsyncClockTest, ALaterPushIsParkedUntilItsTurn) {
  EXPECT_EQ(Take({.worker = 1, .step = 2}), kBusy);
  EXPECT_EQ(Take({.worker = 1, .step = 1}), kBusy);
  EXPECT_TRUE(applied_[1].empty());
  EXPECT_TRUE(notes_.recorded.empty()) << "what is parked is no part of the shard";
  EXPECT_EQ(Take({.worker = 1, .step = 0}), kOk);
  EXPECT_EQ(applied_[1], (std::vector<Step>{0, 1, 2}));
  EXPECT_EQ(Take({.worker = 1, .step = 2}), kOk);  // Its sender was told Busy and sends it again.
  EXPECT_EQ(applied_[1].size(), 3u);
}

TEST_F(AsyncClockTest, OnlySoManyAreParked) {
  for (Step step = 1; step < 100; ++step) EXPECT_EQ(Take({.worker = 1, .step = step}), kBusy);
  EXPECT_EQ(Take({.worker = 1, .step = 0}), kOk);
  EXPECT_EQ(applied_[1].size(), kAhead + 1);
  EXPECT_EQ(Take({.worker = 1, .step = kAhead + 1}), kOk);
}

TEST_F(AsyncClockTest, PiecesGoTogether) {
  EXPECT_EQ(Take({.worker = 1, .step = 0, .piece = 1, .pieces = 2}), kOk);
  EXPECT_TRUE(applied_[1].empty());
  EXPECT_EQ(notes_.recorded.size(), 1u);
  EXPECT_EQ(Take({.worker = 1, .step = 0, .piece = 1, .pieces = 2}), kOk);
  EXPECT_EQ(Take({.worker = 1, .step = 0, .piece = 0, .pieces = 3}), kMalformed);
  EXPECT_EQ(Take({.worker = 1, .step = 0, .piece = 0, .pieces = 2}), kOk);
  EXPECT_EQ(applied_[1], std::vector<Step>{0});
}

TEST_F(AsyncClockTest, APushWaitsForItsRowsAndIsAcknowledgedOnlyThen) {
  notes_.rows_there = false;
  EXPECT_EQ(Take({.worker = 1, .step = 0}), kBusy);
  EXPECT_EQ(Take({.worker = 1, .step = 1}), kBusy);
  EXPECT_TRUE(notes_.recorded.empty());
  EXPECT_FALSE(MayPull(4));
  notes_.rows_there = true;
  clock_->Advance(0, notes_);
  EXPECT_EQ(applied_[1], (std::vector<Step>{0, 1}));
  EXPECT_EQ(Take({.worker = 1, .step = 1}), kOk);
  EXPECT_EQ(clock_->held_bytes(), 0u);
}

TEST_F(AsyncClockTest, AStrangerIsRefused) { EXPECT_EQ(Take({.worker = 9}), kStale); }

TEST_F(AsyncClockTest, AnOrderBeginsWhereItSays) {
  // Worker 1 did more steps of the first order than the order's number of steps implies, worker 2
  // fewer.
  for (Step step = 0; step < 7; ++step) ASSERT_EQ(Take({.worker = 1, .step = step}), kOk);
  EXPECT_EQ(Take({.worker = 1, .step = 6, .first_step = 5}), kBusy) << "the order begins with 5";
  EXPECT_EQ(clock_->Missing(), "the push of step 0 by worker 2");
  notes_.rows_there = false;
  EXPECT_EQ(Take({.worker = 1, .step = 5, .first_step = 5, .slice = 9}), kBusy);
  EXPECT_EQ(Take({.worker = 1, .step = 7, .first_step = 0}), kBusy) << "it has not begun";
  notes_.rows_there = true;
  EXPECT_EQ(Take({.worker = 1, .step = 5, .first_step = 5, .slice = 9}), kOk);
  EXPECT_EQ(Take({.worker = 1, .step = 6, .first_step = 5, .slice = 9}), kOk);
  // It belongs to the last order, so it has been applied.
  EXPECT_EQ(Take({.worker = 1, .step = 6, .first_step = 0}), kOk);
  EXPECT_EQ(applied_[1], (std::vector<Step>{0, 1, 2, 3, 4, 5, 6, 5, 6}));
  EXPECT_EQ(clock_->held_bytes(), 0u);
}

TEST_F(AsyncClockTest, APullWaitsForEveryWorkersPushOfTheStepThatStalenessNames) {
  for (Step step = 0; step < 10; ++step) ASSERT_EQ(Take({.worker = 1, .step = step}), kOk);
  for (Step slow = 0; slow < 6; ++slow) {
    // Worker 2 has pushed `slow` steps; a pull of step t may be answered if step t - 4 is among
    // them.
    for (Step t = 0; t < 14; ++t) EXPECT_EQ(MayPull(t), t < slow + 4) << slow << " " << t;
    ASSERT_EQ(Take({.worker = 2, .step = slow}), kOk);
  }
  EXPECT_EQ(clock_->Missing(), "the push of step 6 by worker 2");
}

TEST_F(AsyncClockTest, WithoutBoundNothingWaits) {
  clock_ = MakeAsyncClock(kUnboundedStaleness, Start(3, 0));
  EXPECT_TRUE(MayPull(1'000'000'000));
}

TEST_F(AsyncClockTest, ResetBeginsAnew) {
  EXPECT_EQ(Take({.worker = 1, .step = 1}), kBusy);
  ASSERT_TRUE(clock_->Reset(Start(2, 40)).ok());
  EXPECT_EQ(clock_->now(), 40u);
  EXPECT_EQ(Take({.worker = 1, .step = 39, .first_step = 38}), kOk);
  EXPECT_TRUE(applied_[1].empty());
  EXPECT_EQ(Take({.worker = 1, .step = 40, .first_step = 40}), kOk);
  EXPECT_EQ(applied_[1], std::vector<Step>{40});
}

// Worker 1 pushes again all that worker 2 has pushed before it was lost.
TEST_F(AsyncClockTest, ASliceCountsOnceWhoeverPushesIt) {
  for (Step step = 0; step < 3; ++step) ASSERT_EQ(Take({.worker = 2, .step = step}), kOk);
  ASSERT_EQ(Take({.worker = 2, .step = 3, .piece = 0, .pieces = 2}), kOk);
  ASSERT_EQ(Take({.worker = 1, .step = 0}), kOk);
  const ProcessId left[] = {ProcessId(1), ProcessId(3)};
  clock_->SetWorkers(ViewNumber(2), left, notes_);
  EXPECT_EQ(notes_.views, std::vector<ViewNumber>{ViewNumber(2)});
  EXPECT_EQ(clock_->view(), ViewNumber(2));
  EXPECT_EQ(clock_->held_bytes(), 0u) << "half a push counts as never sent";
  EXPECT_EQ(Take({.worker = 2, .step = 3}), kStale);
  EXPECT_EQ(clock_->now(), 1u) << "the clocks stay, and who joins has that of the slowest";
  for (Step step = 0; step < 5; ++step) {
    ASSERT_EQ(Take({1, step, 0, 1, 0, /*slice=*/2, /*number=*/step, 0, ViewNumber(2)}), kOk);
  }
  EXPECT_EQ(applied_[1], (std::vector<Step>{0, 3, 4}));
  // All of it again, in a copy.
  const ClockState state = clock_->state();
  clock_ = MakeAsyncClock(3, state);
  EXPECT_EQ(clock_->state().turns, state.turns);
  EXPECT_EQ(clock_->state().applied, state.applied);
  ASSERT_EQ(Take({1, 4, 0, 1, 0, /*slice=*/2, /*number=*/5, 0, ViewNumber(2)}), kOk);
  EXPECT_EQ(applied_[1], (std::vector<Step>{0, 3, 4}));
}

TEST_F(AsyncClockTest, WhatIsCompleteEverywhereNeedsNoMemory) {
  for (Step step = 0; step < 200; ++step) {
    ASSERT_EQ(Take({.worker = 1, .step = step, .settled = step - std::min<Step>(step, 10)}), kOk);
  }
  EXPECT_EQ(clock_->state().applied.size(), 11u);
  EXPECT_EQ(Take({.worker = 2, .step = 5, .number = 0}), kOk);
  EXPECT_TRUE(applied_[2].empty()) << "step 5 is complete";
}

// Every worker sends its pieces in order, and repeats them until they are acknowledged; the network
// delivers, loses or repeats any piece in flight.
TEST_F(AsyncClockTest, AnyArrivalAppliesEveryPushOnceInOrder) {
  constexpr Step kSteps = 40;
  constexpr uint32_t kWorkers = 2;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_TRUE(clock_->Reset(Start(2, 0)).ok());
    applied_.clear();
    notes_.recorded.clear();
    std::vector<Sent> unacknowledged;
    std::map<uint32_t, Step> next;
    const auto parts_of = [&](uint32_t w, Step step) { return 1 + Philox(seed, w, step)[0] % 3; };
    uint64_t draw = 0;
    while (applied_[1].size() + applied_[2].size() < kWorkers * kSteps || !unacknowledged.empty()) {
      ASSERT_LT(++draw, 100'000u);
      const PhiloxBlock bits = Philox(seed, 99, draw);
      const uint32_t worker = 1 + bits[0] % kWorkers;
      if (bits[1] % 3 == 0 && next[worker] < kSteps) {
        const uint32_t parts = parts_of(worker, next[worker]);
        for (uint32_t p = 0; p < parts; ++p) {
          unacknowledged.push_back({worker, next[worker], p, parts});
        }
        ++next[worker];
      } else if (!unacknowledged.empty()) {
        const size_t at = bits[2] % unacknowledged.size();
        const StatusCode code = Take(unacknowledged[at]);
        ASSERT_TRUE(code == kOk || code == kBusy);
        const bool answer_lost = bits[3] % 4 == 0;
        if (code == kOk && !answer_lost) {
          unacknowledged.erase(unacknowledged.begin() + static_cast<ptrdiff_t>(at));
        }
      }
    }
    for (uint32_t w = 1; w <= kWorkers; ++w) {
      ASSERT_EQ(applied_[w].size(), kSteps);
      for (Step step = 0; step < kSteps; ++step) ASSERT_EQ(applied_[w][step], step);
    }
    EXPECT_EQ(clock_->held_bytes(), 0u);
    EXPECT_EQ(clock_->now(), kSteps);
  }
}

}  // namespace
}  // namespace dt::server
