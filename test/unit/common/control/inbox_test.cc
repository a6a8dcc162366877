// Goal: an order is carried out or given back, never both. Method: messages by hand.
#include "common/control/inbox.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

uint64_t TakeOrder(Inbox& inbox) { return std::get<OrderMessage>(inbox.Take()).number; }

TEST(Inbox, GivesBackWhatWasNotTaken) {
  Inbox inbox;
  for (const uint64_t number : {1, 2, 3, 4}) inbox.Add(OrderMessage{number, TrainOrder{}, 1});
  EXPECT_EQ(TakeOrder(inbox), 1u);
  EXPECT_EQ(inbox.OnRecall({3}).first, 3u);
  EXPECT_EQ(TakeOrder(inbox), 2u) << "it was not recalled";
  EXPECT_TRUE(inbox.empty());
}

TEST(Inbox, KeepsWhatHasBegun) {
  Inbox inbox;
  for (const uint64_t number : {1, 2, 3, 4}) inbox.Add(OrderMessage{number, TrainOrder{}, 1});
  inbox.Add(StartMessage{});
  for (const uint64_t number : {1, 2, 3}) EXPECT_EQ(TakeOrder(inbox), number);
  const RecalledMessage answer = inbox.OnRecall({2});
  EXPECT_EQ(answer.from, 2u);
  EXPECT_EQ(answer.first, 4u);
  EXPECT_TRUE(std::holds_alternative<StartMessage>(inbox.Take())) << "no order";
  EXPECT_TRUE(inbox.empty());
}

// The workers have changed in the middle of order 2, which came again with all later ones.
TEST(Inbox, KeepsWhatHadBegunBeforeTheWorkersChanged) {
  Inbox inbox;
  for (const uint64_t number : {1, 2, 3}) inbox.Add(OrderMessage{number, TrainOrder{}, 1});
  for (const uint64_t number : {1, 2}) EXPECT_EQ(TakeOrder(inbox), number);
  inbox.OnNewView();
  EXPECT_TRUE(inbox.empty());
  for (const uint64_t number : {2, 3}) inbox.Add(OrderMessage{number, TrainOrder{}, 1});
  EXPECT_EQ(inbox.OnRecall({2}).first, 3u);
  ASSERT_FALSE(inbox.empty());
  EXPECT_EQ(TakeOrder(inbox), 2u);
  EXPECT_TRUE(inbox.empty());
}

// A worker that waits for a view drops what belongs to the view before, and nothing else.
TEST(Inbox, OrdersThatAreDroppedHaveNotBegun) {
  Inbox inbox;
  for (const uint64_t number : {1, 2, 3}) inbox.Add(OrderMessage{number, TrainOrder{}, 1});
  inbox.Add(ViewBeginsMessage{});
  inbox.Add(OrderMessage{2, TrainOrder{}, 1});
  EXPECT_EQ(TakeOrder(inbox), 1u);
  inbox.DropFirstOrders();
  EXPECT_TRUE(std::holds_alternative<ViewBeginsMessage>(inbox.Take()));
  EXPECT_EQ(inbox.OnRecall({2}).first, 2u);
  EXPECT_TRUE(inbox.empty());
}

TEST(Inbox, AnswersAlikeWhenItIsAskedAgain) {
  Inbox inbox;
  for (const uint64_t number : {1, 2, 3}) inbox.Add(OrderMessage{number, TrainOrder{}, 1});
  EXPECT_EQ(TakeOrder(inbox), 1u);
  EXPECT_EQ(inbox.OnRecall({3}).first, 3u);
  EXPECT_EQ(TakeOrder(inbox), 2u);
  EXPECT_EQ(inbox.OnRecall({3}).first, 3u);
  inbox.Add(OrderMessage{3, TrainOrder{}, 1});  // It is to be done nevertheless.
  EXPECT_EQ(TakeOrder(inbox), 3u);
}

}  // namespace
}  // namespace dt
