#include "common/runtime/bounded_queue.h"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace dt {
namespace {

constexpr Duration kTimeout = seconds(20);

TEST(BoundedQueue, IsFirstInFirstOutAndRefusesBeyondItsCapacity) {
  BoundedQueue<int> queue(2);
  for (int i = 1; i <= 2; ++i) ASSERT_TRUE(queue.TryPush(i));
  int third = 3;
  EXPECT_FALSE(queue.TryPush(third));
  EXPECT_FALSE(queue.Push(third, milliseconds(1)));
  EXPECT_EQ(queue.Pop(kTimeout), 1);
  EXPECT_TRUE(queue.TryPush(third));
  EXPECT_EQ(queue.Pop(kTimeout), 2);
  EXPECT_EQ(queue.Pop(kTimeout), 3);
  EXPECT_EQ(queue.Pop(milliseconds(1)), std::nullopt);
}

TEST(BoundedQueue, ARefusedValueIsUntouched) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  auto first = std::make_unique<int>(1), second = std::make_unique<int>(2);
  ASSERT_TRUE(queue.TryPush(first));
  EXPECT_FALSE(queue.TryPush(second));
  ASSERT_NE(second, nullptr);
  queue.Close();
  EXPECT_FALSE(queue.Push(second, kTimeout));
  EXPECT_EQ(*second, 2);
}

TEST(BoundedQueue, ClosingLeavesWhatIsInside) {
  BoundedQueue<int> queue(4);
  int one = 1;
  ASSERT_TRUE(queue.TryPush(one));
  queue.Close();
  EXPECT_TRUE(queue.closed());
  EXPECT_FALSE(queue.TryPush(one));
  EXPECT_EQ(queue.Pop(kTimeout), 1);
  EXPECT_EQ(queue.Pop(kTimeout), std::nullopt);
}

TEST(BoundedQueue, ClosingEndsWaitsOfBothSides) {
  BoundedQueue<int> empty(1), full(1);
  int one = 1;
  ASSERT_TRUE(full.TryPush(one));
  std::jthread popper([&] { EXPECT_EQ(empty.Pop(std::chrono::hours(1)), std::nullopt); });
  std::jthread pusher([&] {
    int two = 2;
    EXPECT_FALSE(full.Push(two, std::chrono::hours(1)));
  });
  empty.Close();
  full.Close();
}

// No value is lost or duplicated, and the values of each producer stay in order.
TEST(BoundedQueue, ManyThreadsPassEachValueOnce) {
  constexpr int kProducers = 3, kConsumers = 2, kEach = 2000;
  BoundedQueue<int> queue(7);
  std::vector<std::vector<int>> got(kConsumers);
  {
    std::vector<std::jthread> consumers;
    for (auto& mine : got) {
      consumers.emplace_back([&] {
        while (const std::optional<int> value = queue.Pop(kTimeout)) mine.push_back(*value);
      });
    }
    {
      std::vector<std::jthread> producers;
      for (int p = 0; p < kProducers; ++p) {
        producers.emplace_back([&queue, p] {
          for (int i = 0; i < kEach; ++i) {
            int value = p * kEach + i;
            ASSERT_TRUE(queue.Push(value, kTimeout));
          }
        });
      }
    }
    queue.Close();
  }
  std::vector<int> seen(kProducers * kEach);
  for (const auto& mine : got) {
    std::vector<int> last(kProducers, -1);
    for (const int value : mine) {
      ++seen[static_cast<size_t>(value)];
      int& before = last[static_cast<size_t>(value / kEach)];
      EXPECT_LT(before, value);
      before = value;
    }
  }
  EXPECT_EQ(seen, std::vector<int>(kProducers * kEach, 1));
}

}  // namespace
}  // namespace dt
