#include "scheduler/schedule/order_tracker.h"

#include <map>

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

const ProcessId kA(1), kB(2);

TEST(OrderTracker, CompletesInOrderWhenAllHaveReported) {
  OrdersOut out;
  OrderTracker tracker(out);
  EXPECT_EQ(tracker.Issue(TrainOrder{}, {kA, kB}).number, 1u);
  EXPECT_EQ(tracker.Issue(FinishOrder{}, {kA}).number, 2u);
  EXPECT_TRUE(tracker.OnDone(kA, {1, TrainDone{}}).ok());
  EXPECT_TRUE(tracker.OnDone(kA, {2, FinishDone{}}).ok());
  EXPECT_FALSE(tracker.TakeCompleted().has_value()) << "the first is still out";
  EXPECT_TRUE(tracker.OnDone(kB, {1, TrainDone{}}).ok());
  const auto first = tracker.TakeCompleted();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->order.number, 1u);
  EXPECT_EQ(first->outcomes.size(), 2u);
  EXPECT_EQ(tracker.TakeCompleted()->order.number, 2u);
  EXPECT_TRUE(tracker.empty());
}

TEST(OrderTracker, KnowsWhatIsOutToOne) {
  OrdersOut out;
  OrderTracker tracker(out);
  tracker.Issue(TrainOrder{}, {kA, kB});
  tracker.Issue(FinishOrder{}, {kB});
  EXPECT_TRUE(tracker.OnDone(kB, {1, TrainDone{}}).ok());
  ASSERT_EQ(tracker.OutTo(kB).size(), 1u);
  EXPECT_EQ(tracker.OutTo(kB)[0].number, 2u);
  EXPECT_EQ(tracker.OutTo(kA).size(), 1u);
}

TEST(OrderTracker, ReportsThatCannotBeAreRefused) {
  OrdersOut out;
  OrderTracker tracker(out);
  tracker.Issue(TrainOrder{}, {kA});
  EXPECT_FALSE(tracker.OnDone(kA, {7, TrainDone{}}).ok()) << "never given";
  EXPECT_FALSE(tracker.OnDone(kA, {1, SaveDone{}}).ok()) << "another kind";
  EXPECT_FALSE(tracker.TakeCompleted().has_value());
}

TEST(OrderTracker, ReportsThatComeAgainChangeNothing) {
  OrdersOut out;
  OrderTracker tracker(out);
  tracker.Issue(TrainOrder{}, {kA, kB});
  EXPECT_TRUE(tracker.OnDone(kA, {1, TrainDone{.samples = 5}}).ok());
  EXPECT_TRUE(tracker.OnDone(kA, {1, TrainDone{.samples = 6}}).ok());
  EXPECT_FALSE(tracker.TakeCompleted().has_value());
  EXPECT_TRUE(tracker.OnDone(kB, {1, TrainDone{}}).ok());
  auto done = tracker.TakeCompleted();
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->TakeOutcomes<TrainDone>().at(kA).samples, 5u);
  EXPECT_TRUE(tracker.OnDone(kB, {1, TrainDone{}}).ok()) << "it is complete";
  EXPECT_TRUE(tracker.empty());
}

TEST(OrderTracker, WhoIsRemovedNeedNotReport) {
  OrdersOut out;
  OrderTracker tracker(out);
  tracker.Issue(TrainOrder{}, {kA, kB});
  tracker.Issue(FinishOrder{}, {kA, kB});
  EXPECT_TRUE(tracker.OnDone(kB, {1, TrainDone{.samples = 5}}).ok());
  tracker.Remove(kB);
  EXPECT_TRUE(tracker.OutTo(kB).empty());
  EXPECT_FALSE(tracker.TakeCompleted().has_value()) << "the other has not reported";
  EXPECT_TRUE(tracker.OnDone(kA, {1, TrainDone{}}).ok());
  auto first = tracker.TakeCompleted();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->TakeOutcomes<TrainDone>().at(kB).samples, 5u) << "what it has reported stays";
  EXPECT_TRUE(tracker.OnDone(kA, {2, FinishDone{}}).ok());
  EXPECT_EQ(tracker.TakeCompleted()->outcomes.size(), 1u);
  EXPECT_TRUE(tracker.empty());
}

TEST(OrderTracker, AnOrderOnlyTheRemovedWereAtIsComplete) {
  OrdersOut out;
  OrderTracker tracker(out);
  tracker.Issue(TrainOrder{}, {kA});
  tracker.Remove(kA);
  ASSERT_TRUE(tracker.TakeCompleted().has_value());
  EXPECT_TRUE(tracker.empty());
}

TEST(OrderTracker, AnOrderSaysWhichOnesAreSettled) {
  OrdersOut out;
  OrderTracker tracker(out);
  EXPECT_EQ(tracker.Issue(TrainOrder{}, {kA}).settled, 1u);
  EXPECT_EQ(tracker.Issue(TrainOrder{}, {kA}).settled, 1u);
  EXPECT_TRUE(tracker.OnDone(kA, {1, TrainDone{}}).ok());
  tracker.TakeCompleted();
  EXPECT_EQ(tracker.Issue(TrainOrder{}, {kA}).settled, 2u);
}

TEST(OrderTracker, AnOrderToTrainSaysBeforeWhichStepAllIsComplete) {
  OrdersOut out;
  OrderTracker tracker(out);
  const auto settled = [](const OrderMessage& order) {
    return std::get<TrainOrder>(order.what).settled_step;
  };
  EXPECT_EQ(settled(tracker.Issue(TrainOrder{.first_step = 5, .end_step = 9}, {kA})), 5u);
  EXPECT_EQ(settled(tracker.Issue(TrainOrder{.first_step = 9, .end_step = 12}, {kA})), 5u);
  EXPECT_TRUE(tracker.OnDone(kA, {1, TrainDone{}}).ok());
  tracker.TakeCompleted();
  EXPECT_EQ(settled(tracker.Issue(TrainOrder{.first_step = 12, .end_step = 14}, {kA})), 9u);
}

// Two orders of three asynchronous workers, of which A has done the first, and C is lost.
class LostWorkerTest : public ::testing::Test {
 protected:
  LostWorkerTest() {
    const std::vector<ProcessId> all = {kA, kB, kC};
    const std::vector<uint32_t> owners = {1, 2, 3};
    tracker_.Issue(TrainOrder{.end_step = 4, .slice_owner = owners}, all);
    tracker_.Issue(TrainOrder{.first_step = 4, .end_step = 8, .slice_owner = owners}, all);
    Report(kA, 1, 10);
  }
  void Report(ProcessId from, uint64_t order, uint64_t samples) {
    EXPECT_TRUE(tracker_.OnDone(from, {order, TrainDone{.samples = samples}}).ok());
  }
  void Lose(ProcessId id) { tracker_.RemoveWorker(id, true); }
  // The owners of the slices of each order, as they are sent to one worker.
  std::map<uint64_t, std::vector<uint32_t>> GoOn(const std::vector<ProcessId>& left, ProcessId to) {
    std::map<uint64_t, std::vector<uint32_t>> owners;
    const std::vector<uint32_t> none;
    for (const auto& [id, order] : tracker_.OnNewWorkers(
             {.workers = left, .newcomers = {}, .slice_owner = none, .asynchronous = true})) {
      if (id == to) owners[order.number] = std::get<TrainOrder>(order.what).slice_owner;
    }
    return owners;
  }
  uint64_t SamplesOfFirst() {
    auto done = tracker_.TakeCompleted();
    if (!done.has_value()) return 0;
    uint64_t samples = 0;
    for (const auto& [id, its] : done->TakeOutcomes<TrainDone>()) samples += its.samples;
    return samples;
  }

  const ProcessId kC{3};
  OrdersOut out_;
  OrderTracker tracker_{out_};
};

using Owners = std::vector<uint32_t>;

// Its own slice of the first order is done: it comes again for the other one alone.
TEST_F(LostWorkerTest, OthersDoItsSlices) {
  Lose(kC);
  const auto sent = GoOn({kA, kB}, kA);
  EXPECT_EQ(sent.at(1), (Owners{0, 2, 1}));
  EXPECT_EQ(sent.at(2), (Owners{1, 2, 1}));
  Report(kB, 1, 20);
  EXPECT_EQ(SamplesOfFirst(), 0u) << "a slice is left";
  Report(kA, 1, 5);
  EXPECT_EQ(SamplesOfFirst(), 35u);
}

TEST_F(LostWorkerTest, WhatItHasReportedStays) {
  Report(kC, 1, 7);
  Lose(kC);
  const auto sent = GoOn({kA, kB}, kA);
  EXPECT_FALSE(sent.contains(1)) << "nothing of it is left for A";
  EXPECT_EQ(sent.at(2), (Owners{1, 2, 1}));
  Report(kB, 1, 20);
  EXPECT_EQ(SamplesOfFirst(), 37u);
}

TEST_F(LostWorkerTest, AnotherIsLost) {
  Lose(kC);
  GoOn({kA, kB}, kA);
  Lose(kA);
  EXPECT_EQ(GoOn({kB}, kB).at(1), (Owners{0, 2, 2}));
  EXPECT_EQ(GoOn({kB}, kB).at(2), (Owners{2, 2, 2}));
  Report(kB, 1, 25);
  EXPECT_EQ(SamplesOfFirst(), 35u);
}

// It may have begun them.
TEST_F(LostWorkerTest, OrdersThatItHadAreNotCancelled) {
  Lose(kC);
  tracker_.Recall(1);
  EXPECT_FALSE(tracker_.OnRecalled(kA, {2, 2})->has_value());
  const auto recalled = tracker_.OnRecalled(kB, {2, 2});
  ASSERT_TRUE(recalled.ok() && recalled->has_value());
  EXPECT_TRUE((*recalled)->cancelled.empty());
  EXPECT_EQ((*recalled)->again.size(), 2u);
}

// Six orders to both, the first of which A has done.
class RecallTest : public ::testing::Test {
 protected:
  RecallTest() {
    for (int i = 0; i < 6; ++i) tracker_.Issue(TrainOrder{}, {kA, kB});
    EXPECT_TRUE(tracker_.OnDone(kA, {1, TrainDone{}}).ok());
    tracker_.Recall(2);
  }
  OrderTracker::Recalled Answer(ProcessId from, uint64_t first) {
    const auto recalled = tracker_.OnRecalled(from, {3, first});
    EXPECT_TRUE(recalled.ok());
    EXPECT_TRUE(recalled.ok() && recalled->has_value());
    return recalled.ok() ? recalled->value_or(OrderTracker::Recalled()) : OrderTracker::Recalled();
  }
  void AnswerFirst(ProcessId from, uint64_t first) {
    const auto recalled = tracker_.OnRecalled(from, {3, first});
    EXPECT_TRUE(recalled.ok() && !recalled->has_value());
  }
  std::vector<uint64_t> OutTo(ProcessId id) const {
    std::vector<uint64_t> numbers;
    for (const OrderMessage& order : tracker_.OutTo(id)) numbers.push_back(order.number);
    return numbers;
  }

  OrdersOut out_;
  OrderTracker tracker_{out_};
};

using Numbers = std::vector<uint64_t>;

TEST_F(RecallTest, WhatNobodyHasBegunIsCancelled) {
  ASSERT_TRUE(tracker_.RecallTo(kA).has_value());
  EXPECT_EQ(tracker_.RecallTo(kA)->from, 3u);
  AnswerFirst(kA, 3);
  EXPECT_FALSE(tracker_.RecallTo(kA).has_value()) << "it has answered";
  EXPECT_TRUE(tracker_.RecallTo(kB).has_value());
  const OrderTracker::Recalled recalled = Answer(kB, 3);
  ASSERT_EQ(recalled.cancelled.size(), 4u);
  EXPECT_EQ(recalled.cancelled.front().number, 3u);
  EXPECT_TRUE(recalled.again.empty());
  EXPECT_FALSE(tracker_.RecallTo(kB).has_value());
  EXPECT_EQ(OutTo(kB), (Numbers{1, 2}));
  EXPECT_EQ(tracker_.Issue(SaveOrder{}, {kA, kB}).number, 7u) << "no number comes twice";
}

TEST_F(RecallTest, WhatOneHasBegunAllDo) {
  AnswerFirst(kB, 3);
  const OrderTracker::Recalled recalled = Answer(kA, 5);
  ASSERT_EQ(recalled.cancelled.size(), 2u);
  EXPECT_EQ(recalled.cancelled.front().number, 5u);
  ASSERT_EQ(recalled.again.size(), 2u);
  EXPECT_EQ(recalled.again[0].first, kB);
  EXPECT_EQ(recalled.again[0].second.number, 3u);
  EXPECT_EQ(recalled.again[1].second.number, 4u);
  EXPECT_EQ(OutTo(kA), (Numbers{2, 3, 4}));
}

// An answer would not stay true if its sender began what it has given back.
TEST_F(RecallTest, NothingThatIsRecalledIsSentMeanwhile) {
  EXPECT_EQ(OutTo(kA), (Numbers{2}));
  AnswerFirst(kA, 3);
  EXPECT_EQ(OutTo(kA), (Numbers{2}));
  Answer(kB, 6);
  EXPECT_EQ(OutTo(kA), (Numbers{2, 3, 4, 5}));
}

// So it is when the workers change, which then have nothing of what is recalled in hand.
TEST_F(RecallTest, NewWorkersGetWhatWasRecalledWhenAllHaveAnswered) {
  AnswerFirst(kA, 5);
  const std::vector<ProcessId> workers = {kA, kB}, newcomers;
  const std::vector<uint32_t> owners = {0, 1};
  for (const auto& [id, order] : tracker_.OnNewWorkers(
           {.workers = workers, .newcomers = newcomers, .step = 0, .slice_owner = owners})) {
    EXPECT_LT(order.number, 3u) << id.value();
  }
  const OrderTracker::Recalled recalled = Answer(kB, 3);
  EXPECT_EQ(recalled.cancelled.size(), 2u);
  std::map<ProcessId, Numbers> again;
  for (const auto& [id, order] : recalled.again) again[id].push_back(order.number);
  EXPECT_EQ(again[kA], (Numbers{3, 4})) << "it had begun 4, and has lost it";
  EXPECT_EQ(again[kB], (Numbers{3, 4}));
}

TEST_F(RecallTest, AnswersThatComeLateOrAgainChangeNothing) {
  AnswerFirst(kA, 3);
  AnswerFirst(kA, 5);
  EXPECT_EQ(Answer(kB, 3).cancelled.size(), 4u) << "the first answer counts";
  AnswerFirst(kB, 3);
  EXPECT_FALSE(tracker_.OnRecalled(kB, {3, 8}).ok()) << "it has begun what was never given";
}

TEST_F(RecallTest, ARecallThatComesTooLateIsForgotten) {
  for (uint64_t order = 1; order <= 6; ++order) {
    for (const ProcessId id : {kA, kB}) EXPECT_TRUE(tracker_.OnDone(id, {order, TrainDone{}}).ok());
    EXPECT_TRUE(tracker_.TakeCompleted().has_value());
  }
  EXPECT_FALSE(tracker_.RecallTo(kA).has_value());
  tracker_.Issue(SaveOrder{}, {kA, kB});
  AnswerFirst(kA, 7);
  AnswerFirst(kB, 7);
  EXPECT_EQ(OutTo(kA), (Numbers{7}));
}

}  // namespace
}  // namespace dt::scheduler
