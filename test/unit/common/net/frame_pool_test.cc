#include "common/net/frame_pool.h"

#include <algorithm>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace dt {
namespace {

// Memory that returns its only block once.
class OneBlock : public FrameMemory {
 public:
  std::byte* Allocate(size_t bytes) override {
    if (taken_ || bytes > sizeof(block_)) return nullptr;
    taken_ = true;
    return block_;
  }
  void Free(std::byte*, size_t) override { ++freed_; }
  size_t bytes_min() const override { return 100; }

  bool Has(const Frame& frame) const { return frame.bytes().data() == block_; }
  int freed() const { return freed_; }

 private:
  alignas(64) std::byte block_[4096]{};
  bool taken_ = false;
  int freed_ = 0;
};

TEST(FramePool, ReturnsABufferToTheNextFrameOfItsSize) {
  constexpr size_t kSize = 3 << 20;
  const void* first = nullptr;
  {
    Frame frame = FramePool::Private().Make(kSize);
    first = frame.bytes().data();
  }
  EXPECT_EQ(FramePool::Private().Make(kSize - 5).bytes().data(), first);
}

TEST(FramePool, UsesTheMemoryThatItIsGiven) {
  const auto memory = std::make_shared<OneBlock>();
  FramePool pool(memory);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(memory->Has(pool.Make(1000)));
}

TEST(FramePool, MakesSmallFramesInPrivateMemory) {
  const auto memory = std::make_shared<OneBlock>();
  EXPECT_FALSE(memory->Has(FramePool(memory).Make(99)));
}

TEST(FramePool, MakesFramesInPrivateMemoryWhenItsOwnIsUsedUp) {
  const auto memory = std::make_shared<OneBlock>();
  FramePool pool(memory);
  const Frame held = pool.Make(1000);
  Frame next = pool.Make(1000);
  EXPECT_FALSE(memory->Has(next));
  std::ranges::fill(next.bytes(), std::byte{1});
}

TEST(FramePool, FramesOutliveIt) {
  const auto memory = std::make_shared<OneBlock>();
  Frame frame = FramePool(memory).Make(1000);
  std::ranges::fill(frame.bytes(), std::byte{1});
  EXPECT_EQ(memory->freed(), 0);
  frame = Frame();
  EXPECT_EQ(memory->freed(), 1);
}

TEST(FramePool, CopiesBytes) {
  const std::vector<std::byte> bytes(5000, std::byte{7});
  const Frame frame = FramePool::Private().CopyOf(bytes);
  EXPECT_TRUE(std::ranges::equal(frame.bytes(), bytes));
}

TEST(FramePool, ServesManyThreads) {
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (size_t i = 0; i < 2000; ++i) {
        Frame frame = FramePool::Private().Make(1 + (i * 37) % 5000);
        std::ranges::fill(frame.bytes(), static_cast<std::byte>(t));
        const auto bytes = frame.bytes();
        ASSERT_TRUE(std::ranges::all_of(bytes, [t](std::byte b) { return b == std::byte(t); }));
      }
    });
  }
}

}  // namespace
}  // namespace dt
