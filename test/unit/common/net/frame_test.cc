#include "common/net/frame.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(Frame, StartsAtACacheLineWhateverItsSize) {
  for (const size_t size :
       {1u, 7u, 255u, 256u, 257u, 319u, 320u, 321u, 4097u, 1u << 20, (1u << 20) + 1}) {
    Frame frame = Frame::Of(size);
    ASSERT_EQ(frame.size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(frame.bytes().data()) % 64, 0u) << size;
    std::ranges::fill(frame.bytes(),
                      std::byte{0xab});  // Sanitizers detect a buffer that is too short.
  }
}

TEST(Frame, OfNothingIsEmpty) {
  EXPECT_EQ(Frame::Of(0).size(), 0u);
  EXPECT_TRUE(Frame::CopyOf({}).as<float>().empty());
}

TEST(Frame, SharesForeignMemoryUntilTheLastHolderIsGone) {
  auto memory = std::make_shared<std::vector<uint64_t>>(4, 7);
  Frame frame = Frame::Of(std::as_writable_bytes(std::span(*memory)), memory);
  EXPECT_EQ(memory.use_count(), 2);
  EXPECT_EQ(frame.as<uint64_t>()[3], 7u);
  Frame moved = std::move(frame);
  EXPECT_EQ(moved.as<uint64_t>()[3], 7u);
  moved = Frame();
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(Frame, OfAPeerIsCopiedToSettleAndOthersAreNot) {
  std::vector<uint64_t> memory(600, 7);
  Frame frame = Frame::Settled(Frame::OfPeer(std::as_writable_bytes(std::span(memory)), nullptr));
  memory.assign(600, 8);
  EXPECT_TRUE(
      std::ranges::all_of(std::as_const(frame).as<uint64_t>(), [](uint64_t v) { return v == 7; }));
  const void* const place = frame.bytes().data();
  EXPECT_EQ(Frame::Settled(std::move(frame)).bytes().data(), place);
}

TEST(Frame, LargerThanEveryClassStillWorks) {
  constexpr size_t kSize = (size_t{1} << 27) + 1;
  Frame frame = Frame::Of(kSize);
  frame.bytes()[kSize - 1] = std::byte{1};
  EXPECT_EQ(frame.size(), kSize);
}

}  // namespace
}  // namespace dt
