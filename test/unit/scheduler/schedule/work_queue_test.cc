#include "scheduler/schedule/work_queue.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

TEST(WorkQueue, EveryPartIsGivenOnceInOrderAndInShrinkingPieces) {
  WorkLeft left;
  WorkQueue queue(3, left);
  queue.Open(5, 20);
  uint64_t next = 0, last_size = 60;
  for (;;) {
    const SplitMessage parts = queue.Next(5);
    EXPECT_EQ(parts.order, 5u);
    EXPECT_EQ(parts.begin, next);
    if (parts.begin == parts.end) break;
    EXPECT_LE(parts.end - parts.begin, last_size);
    last_size = parts.end - parts.begin;
    next = parts.end;
  }
  EXPECT_EQ(next, 60u);
  EXPECT_EQ(last_size, 1u);
  EXPECT_EQ(queue.Next(5).end, 60u);
}

TEST(WorkQueue, OrdersAreApart) {
  WorkLeft left;
  WorkQueue queue(2, left);
  queue.Open(1, 4);
  queue.Open(2, 4);
  EXPECT_EQ(queue.Next(1).end, 2u);
  EXPECT_EQ(queue.Next(2).begin, 0u);
  queue.Close(1);
  EXPECT_EQ(queue.Next(1).end, 0u);
  EXPECT_EQ(queue.Next(3).end, 0u);
}

}  // namespace
}  // namespace dt::scheduler
