#include "common/base/pool_allocator.h"

#include <cstdint>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(PoolAllocator, GivesDistinctAlignedBlocksOfEverySize) {
  std::vector<std::pair<std::byte*, size_t>> taken;
  for (size_t bytes = 1; bytes <= (256 << 10); bytes = bytes * 3 / 2 + 1) {
    for (int i = 0; i < 3; ++i) {
      auto* const block = static_cast<std::byte*>(TakeBlock(bytes));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignof(std::max_align_t), 0);
      std::fill_n(block, bytes, static_cast<std::byte>(taken.size()));
      taken.emplace_back(block, bytes);
    }
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    const auto [block, bytes] = taken[i];
    EXPECT_EQ(std::count(block, block + bytes, static_cast<std::byte>(i)), bytes);
    ReturnBlock(block, bytes);
  }
}

// Lists are made on one thread and freed on another; there are more of them than the pool keeps.
TEST(PoolAllocator, ListsPassBetweenThreads) {
  for (int round = 0; round < 50; ++round) {
    std::vector<PooledVector<uint64_t>> lists(2000);
    std::jthread([&] {
      for (size_t i = 0; i < lists.size(); ++i) {
        lists[i].resize(i);
        std::iota(lists[i].begin(), lists[i].end(), i);
      }
    }).join();
    std::jthread other([] {
      for (size_t i = 0; i < 2000; ++i) EXPECT_EQ(*MakePooled<size_t>(i), i);
    });
    for (size_t i = 0; i < lists.size(); ++i) {
      ASSERT_EQ(lists[i].size(), i);
      EXPECT_TRUE(i == 0 || lists[i].back() == 2 * i - 1);
      lists[i] = {};
    }
  }
}

}  // namespace
}  // namespace dt
