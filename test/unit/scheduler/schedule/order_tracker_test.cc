#include "scheduler/schedule/order_tracker.h"

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

}  // namespace
}  // namespace dt::scheduler
