#include "common/control/unsettled.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

class UnsettledTest : public ::testing::Test {
 protected:
  void Say(ControlMessage message) { unsettled_.OnSent(message); }
  bool Hear(const ControlMessage& message) { return unsettled_.OnReceived(message); }
  size_t size() const { return unsettled_.messages().size(); }

  Unsettled unsettled_;
};

TEST_F(UnsettledTest, ReportsOfOrdersAreKeptUntilTheyAreSettled) {
  for (const uint64_t order : {1, 2, 3}) Say(OrderDoneMessage{order, TrainDone{}});
  EXPECT_TRUE(Hear(OrderMessage{4, TrainOrder{}, 3}));
  ASSERT_EQ(size(), 1u);
  EXPECT_EQ(std::get<OrderDoneMessage>(unsettled_.messages()[0]).order, 3u);
}

TEST_F(UnsettledTest, OnlyTheLastCheckpointsRowsAreReportedAgain) {
  Say(RowsWrittenMessage{4, {}});
  Say(RowsWrittenMessage{9, {}});
  ASSERT_EQ(size(), 1u);
  EXPECT_EQ(std::get<RowsWrittenMessage>(unsettled_.messages()[0]).order, 9u);
}

TEST_F(UnsettledTest, OrdersAndTheStartCountOnce) {
  EXPECT_TRUE(Hear(StartMessage{}));
  EXPECT_FALSE(Hear(StartMessage{}));
  EXPECT_TRUE(Hear(OrderMessage{5, TrainOrder{}, 5}));
  EXPECT_FALSE(Hear(OrderMessage{5, TrainOrder{}, 5}));
  EXPECT_FALSE(Hear(OrderMessage{4, TrainOrder{}, 4}));
  EXPECT_TRUE(Hear(OrderMessage{6, TrainOrder{}, 5}));
}

TEST_F(UnsettledTest, AQuestionIsAskedAgainUntilItsAnswer) {
  Say(KvGetMessage{"a"});
  Say(SplitRequestMessage{7});
  EXPECT_EQ(size(), 2u);
  EXPECT_FALSE(Hear(SplitMessage{.order = 7, .number = 0})) << "of no request";
  EXPECT_TRUE(Hear(SplitMessage{.order = 7, .number = 1}));
  EXPECT_FALSE(Hear(SplitMessage{.order = 7, .number = 1})) << "a second time";
  EXPECT_TRUE(Hear(KvValueMessage{"b", ""}));
  EXPECT_EQ(size(), 1u);
  EXPECT_TRUE(Hear(KvValueMessage{"a", ""}));
  EXPECT_EQ(size(), 0u);
}

TEST_F(UnsettledTest, OrdersThatWereGivenBackMayComeAgain) {
  for (const uint64_t order : {1, 2, 3, 4}) Hear(OrderMessage{order, TrainOrder{}, 1});
  Say(RecalledMessage{3, 3});
  EXPECT_EQ(size(), 0u) << "the scheduler asks again";
  EXPECT_FALSE(Hear(OrderMessage{2, TrainOrder{}, 1}));
  EXPECT_TRUE(Hear(OrderMessage{3, TrainOrder{}, 1}));
  EXPECT_FALSE(Hear(OrderMessage{3, TrainOrder{}, 1}));
  Say(RecalledMessage{9, 9});
  EXPECT_FALSE(Hear(OrderMessage{3, TrainOrder{}, 1}));
}

}  // namespace
}  // namespace dt
