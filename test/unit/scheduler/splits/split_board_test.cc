#include "scheduler/splits/split_board.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

TEST(SplitBoard, EveryPartIsGivenOnceInOrderAndInShrinkingPieces) {
  SplitBoard board(3);
  board.Open(5, 20);
  uint64_t next = 0, last_size = 60;
  for (;;) {
    const SplitMessage split = board.Next(5);
    EXPECT_EQ(split.order, 5u);
    EXPECT_EQ(split.begin, next);
    if (split.begin == split.end) break;
    EXPECT_LE(split.end - split.begin, last_size);
    last_size = split.end - split.begin;
    next = split.end;
  }
  EXPECT_EQ(next, 60u);
  EXPECT_EQ(last_size, 1u);
  EXPECT_EQ(board.Next(5).end, 60u);
}

TEST(SplitBoard, OrdersAreApart) {
  SplitBoard board(2);
  board.Open(1, 4);
  board.Open(2, 4);
  EXPECT_EQ(board.Next(1).end, 2u);
  EXPECT_EQ(board.Next(2).begin, 0u);
  board.Close(1);
  EXPECT_EQ(board.Next(1).end, 0u);
  EXPECT_EQ(board.Next(3).end, 0u);
}

}  // namespace
}  // namespace dt::scheduler
