#include "scheduler/schedule/work_queue.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

class WorkQueueTest : public ::testing::Test {
 protected:
  // The worker's next request.
  SplitMessage Next(WorkQueue& queue, uint64_t order, uint32_t worker = 7) {
    return queue.Next(ProcessId(worker), {order, ++requests_}, workers_);
  }
  uint32_t workers_ = 2;
  WorkRecord record_;
  uint64_t requests_ = 0;
};

TEST_F(WorkQueueTest, EveryPartIsGivenOnceInOrderAndInShrinkingPieces) {
  workers_ = 3;
  WorkQueue queue(record_);
  queue.Open(5, 60);
  uint64_t next = 0, last_size = 60;
  for (;;) {
    const SplitMessage parts = Next(queue, 5);
    EXPECT_EQ(parts.order, 5u);
    EXPECT_EQ(parts.number, requests_);
    if (parts.begin == parts.end) break;
    EXPECT_EQ(parts.begin, next);
    EXPECT_LE(parts.end - parts.begin, last_size);
    last_size = parts.end - parts.begin;
    next = parts.end;
  }
  EXPECT_EQ(next, 60u);
  EXPECT_EQ(last_size, 1u);
  EXPECT_EQ(Next(queue, 5).end, 0u) << "nothing";
}

TEST_F(WorkQueueTest, OrdersAreApart) {
  WorkQueue queue(record_);
  queue.Open(1, 8);
  queue.Open(2, 8);
  EXPECT_EQ(Next(queue, 1).end, 2u);
  EXPECT_EQ(Next(queue, 2).begin, 0u);
  queue.Close(1);
  EXPECT_EQ(Next(queue, 1).end, 0u);
  EXPECT_EQ(Next(queue, 3).end, 0u);
}

TEST_F(WorkQueueTest, ARequestThatComesAgainGetsTheSameParts) {
  WorkQueue queue(record_);
  queue.Open(1, 8);
  const SplitMessage first = Next(queue, 1, 7), other = Next(queue, 1, 8);
  WorkQueue successor(record_);  // Another scheduler has it, with the same record.
  for (const SplitMessage& given : {first, other}) {
    const ProcessId worker(given.number == first.number ? 7 : 8);
    const SplitMessage again = successor.Next(worker, {1, given.number}, workers_);
    EXPECT_EQ(again.begin, given.begin);
    EXPECT_EQ(again.end, given.end);
  }
  EXPECT_EQ(Next(successor, 1).begin, other.end);
}

// Not so the parts that it has reported to be done.
TEST_F(WorkQueueTest, WhatALostWorkerHasTakenIsHandedOutAgain) {
  WorkQueue queue(record_);
  queue.Open(1, 40);
  queue.Open(2, 8);
  std::vector<int> done(40);
  const auto take = [&](const SplitMessage& parts) {
    for (uint64_t part = parts.begin; part < parts.end; ++part) ++done[part];
  };
  for (const uint32_t worker : {7, 8, 7}) {
    const SplitMessage parts = Next(queue, 1, worker);
    if (worker == 8) take(parts);
  }
  Next(queue, 2, 7);
  queue.SetDone(2, ProcessId(7));
  queue.GiveBack(ProcessId(7));
  for (SplitMessage parts = Next(queue, 1, 8); parts.begin < parts.end; parts = Next(queue, 1, 8)) {
    take(parts);
  }
  EXPECT_EQ(done, std::vector<int>(40, 1));
  EXPECT_EQ(Next(queue, 2, 8).begin, 2u);
}

}  // namespace
}  // namespace dt::scheduler
