#include "scheduler/splits/order_board.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

const ProcessId kA(1), kB(2);

TEST(OrderBoard, CompletesInOrderWhenAllHaveReported) {
  OrderBoard board;
  EXPECT_EQ(board.Issue(TrainOrder{}, {kA, kB}).number, 1u);
  EXPECT_EQ(board.Issue(FinishOrder{}, {kA}).number, 2u);
  EXPECT_TRUE(board.OnDone(kA, {1, TrainDone{}}).ok());
  EXPECT_TRUE(board.OnDone(kA, {2, FinishDone{}}).ok());
  EXPECT_FALSE(board.TakeCompleted().has_value()) << "the first is still out";
  EXPECT_TRUE(board.OnDone(kB, {1, TrainDone{}}).ok());
  const auto first = board.TakeCompleted();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->order.number, 1u);
  EXPECT_EQ(first->outcomes.size(), 2u);
  EXPECT_EQ(board.TakeCompleted()->order.number, 2u);
  EXPECT_TRUE(board.empty());
}

TEST(OrderBoard, KnowsWhatIsOutToOne) {
  OrderBoard board;
  board.Issue(TrainOrder{}, {kA, kB});
  board.Issue(FinishOrder{}, {kB});
  EXPECT_TRUE(board.OnDone(kB, {1, TrainDone{}}).ok());
  ASSERT_EQ(board.OutTo(kB).size(), 1u);
  EXPECT_EQ(board.OutTo(kB)[0].number, 2u);
  EXPECT_EQ(board.OutTo(kA).size(), 1u);
}

TEST(OrderBoard, ReportsThatCannotBeAreRefused) {
  OrderBoard board;
  board.Issue(TrainOrder{}, {kA});
  EXPECT_FALSE(board.OnDone(kA, {7, TrainDone{}}).ok()) << "no such order";
  EXPECT_FALSE(board.OnDone(kB, {1, TrainDone{}}).ok()) << "not its order";
  OrderBoard other;
  other.Issue(TrainOrder{}, {kA});
  EXPECT_FALSE(other.OnDone(kA, {1, SaveDone{}}).ok()) << "another kind";
  OrderBoard twice;
  twice.Issue(TrainOrder{}, {kA, kB});
  EXPECT_TRUE(twice.OnDone(kA, {1, TrainDone{}}).ok());
  EXPECT_FALSE(twice.OnDone(kA, {1, TrainDone{}}).ok()) << "a second time";
}

}  // namespace
}  // namespace dt::scheduler
