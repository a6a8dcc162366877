#include "common/device/block_allocator.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(BlockAllocator, PiecesAreAlignedAndFreedOnesComeBack) {
  BlockAllocator blocks(1024, 256);
  EXPECT_EQ(blocks.Allocate(1), 0u);
  EXPECT_EQ(blocks.Allocate(300), 256u);
  EXPECT_EQ(blocks.Allocate(0), 768u);
  EXPECT_EQ(blocks.bytes_used(), 1024u);
  EXPECT_EQ(blocks.Allocate(0), std::nullopt);
  blocks.Free(256);
  EXPECT_EQ(blocks.Allocate(513), std::nullopt);
  EXPECT_EQ(blocks.Allocate(512), 256u);
}

TEST(BlockAllocator, NeighboursBecomeOnePieceInAnyOrder) {
  for (const std::vector<uint64_t>& order :
       {std::vector<uint64_t>{0, 256, 512}, {512, 256, 0}, {0, 512, 256}, {256, 0, 512}}) {
    BlockAllocator blocks(768, 256);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(blocks.Allocate(256).has_value());
    for (const uint64_t offset : order) blocks.Free(offset);
    EXPECT_EQ(blocks.largest_free(), 768u);
    EXPECT_EQ(blocks.Allocate(768), 0u);
  }
}

TEST(BlockAllocator, TheSmallestPieceThatFitsIsTaken) {
  BlockAllocator blocks(4096, 256);
  std::vector<uint64_t> given;
  for (const uint64_t bytes : {1024, 256, 512, 256}) given.push_back(*blocks.Allocate(bytes));
  blocks.Free(given[0]);
  blocks.Free(given[2]);
  EXPECT_EQ(blocks.Allocate(400), given[2]);
  EXPECT_EQ(blocks.Allocate(600), given[0]);
}

TEST(BlockAllocator, KnowsWhatIsGivenOut) {
  BlockAllocator blocks(1024, 256);
  ASSERT_EQ(blocks.Allocate(256), 0u);
  ASSERT_EQ(blocks.Allocate(512), 256u);
  EXPECT_TRUE(blocks.IsAllocated(256, 512));
  EXPECT_TRUE(blocks.IsAllocated(300, 468));
  EXPECT_FALSE(blocks.IsAllocated(300, 469));
  EXPECT_FALSE(blocks.IsAllocated(0, 257)) << "two pieces are not one";
  EXPECT_FALSE(blocks.IsAllocated(768, 1));
  EXPECT_FALSE(blocks.IsAllocated(256, ~uint64_t{0}));
  blocks.Free(256);
  EXPECT_FALSE(blocks.IsAllocated(256, 1));
}

TEST(BlockAllocator, WhatIsLargerThanAllIsRefusedWithoutOverflow) {
  BlockAllocator blocks(1000, 256);
  EXPECT_EQ(blocks.bytes_total(), 768u);
  EXPECT_EQ(blocks.Allocate(~uint64_t{0}), std::nullopt);
  EXPECT_EQ(blocks.Allocate(769), std::nullopt);
  EXPECT_EQ(blocks.Allocate(768), 0u);
}

// In any sequence of calls, blocks never overlap, no memory is lost, and freed memory can be
// allocated again.
TEST(BlockAllocator, RandomSequencesKeepPiecesApart) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    constexpr uint64_t kSlots = 64, kAlignment = 64;
    BlockAllocator blocks(kSlots * kAlignment, kAlignment);
    std::vector<bool> taken(kSlots);
    std::vector<std::pair<uint64_t, uint64_t>> pieces;
    for (int step = 0; step < 2000; ++step) {
      if (random() % 2 == 0) {
        const uint64_t slots = random() % 12 + 1;
        const auto at = blocks.Allocate(slots * kAlignment);
        if (!at.has_value()) {
          EXPECT_LT(blocks.largest_free(), slots * kAlignment) << "seed " << seed;
          continue;
        }
        for (uint64_t i = 0; i < slots; ++i) {
          ASSERT_FALSE(taken[*at / kAlignment + i]) << "seed " << seed << " step " << step;
          taken[*at / kAlignment + i] = true;
        }
        pieces.emplace_back(*at, slots);
      } else if (!pieces.empty()) {
        std::swap(pieces[random() % pieces.size()], pieces.back());
        const auto [at, slots] = pieces.back();
        blocks.Free(at);
        for (uint64_t i = 0; i < slots; ++i) taken[at / kAlignment + i] = false;
        pieces.pop_back();
      }
      uint64_t longest = 0, run = 0, used = 0;
      for (const bool slot : taken) {
        used += slot ? 1 : 0;
        run = slot ? 0 : run + 1;
        longest = std::max(longest, run);
      }
      ASSERT_EQ(blocks.bytes_used(), used * kAlignment) << "seed " << seed;
      ASSERT_EQ(blocks.largest_free(), longest * kAlignment) << "seed " << seed;
    }
  }
}

TEST(BlockAllocatorDeathTest, FreeingTwiceIsABug) {
  BlockAllocator blocks(1024, 256);
  blocks.Free(*blocks.Allocate(256));
  EXPECT_DEATH(blocks.Free(0), "piece != given_.end");
}

}  // namespace
}  // namespace dt
