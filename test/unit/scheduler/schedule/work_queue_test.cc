#include "scheduler/schedule/work_queue.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

class WorkQueueTest : public ::testing::Test {
 protected:
  // The worker's next request.
  SplitMessage Next(WorkQueue& queue, uint64_t order, uint32_t worker = 7) {
    return queue.Next(ProcessId(worker), {order, ++requests_});
  }
  WorkRecord record_;
  uint64_t requests_ = 0;
};

TEST_F(WorkQueueTest, EveryPartIsGivenOnceInOrderAndInShrinkingPieces) {
  WorkQueue queue(3, record_);
  queue.Open(5, 20);
  uint64_t next = 0, last_size = 60;
  for (;;) {
    const SplitMessage parts = Next(queue, 5);
    EXPECT_EQ(parts.order, 5u);
    EXPECT_EQ(parts.number, requests_);
    EXPECT_EQ(parts.begin, next);
    if (parts.begin == parts.end) break;
    EXPECT_LE(parts.end - parts.begin, last_size);
    last_size = parts.end - parts.begin;
    next = parts.end;
  }
  EXPECT_EQ(next, 60u);
  EXPECT_EQ(last_size, 1u);
  EXPECT_EQ(Next(queue, 5).end, 60u);
}

TEST_F(WorkQueueTest, OrdersAreApart) {
  WorkQueue queue(2, record_);
  queue.Open(1, 4);
  queue.Open(2, 4);
  EXPECT_EQ(Next(queue, 1).end, 2u);
  EXPECT_EQ(Next(queue, 2).begin, 0u);
  queue.Close(1);
  EXPECT_EQ(Next(queue, 1).end, 0u);
  EXPECT_EQ(Next(queue, 3).end, 0u);
}

TEST_F(WorkQueueTest, ARequestThatComesAgainGetsTheSameParts) {
  WorkQueue queue(2, record_);
  queue.Open(1, 4);
  const SplitMessage first = Next(queue, 1, 7), other = Next(queue, 1, 8);
  WorkQueue successor(2, record_);  // Of another scheduler, with the same record.
  for (const SplitMessage& given : {first, other}) {
    const ProcessId worker(given.number == first.number ? 7 : 8);
    const SplitMessage again = successor.Next(worker, {1, given.number});
    EXPECT_EQ(again.begin, given.begin);
    EXPECT_EQ(again.end, given.end);
  }
  EXPECT_EQ(Next(successor, 1).begin, other.end);
}

}  // namespace
}  // namespace dt::scheduler
