#include "common/net/shm/shm_arena.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/net/frame_pool.h"

namespace dt {
namespace {

class ShmArenaTest : public ::testing::Test {
 protected:
  const std::shared_ptr<ShmArena> arena_ = *ShmArena::Create();
};

TEST_F(ShmArenaTest, FreeNeighboursBecomeOne) {
  std::vector<std::byte*> pieces;
  for (int i = 0; i < 8; ++i) pieces.push_back(arena_->Allocate(1 << 20));
  for (const int i : {1, 3, 2, 0, 7, 5, 6, 4}) {
    arena_->Free(pieces[static_cast<size_t>(i)], 1 << 20);
  }
  EXPECT_EQ(arena_->Allocate(8 << 20), pieces[0]);
}

TEST_F(ShmArenaTest, HasNothingBeyondItsEnd) {
  EXPECT_EQ(arena_->Allocate(kArenaBytes + 1), nullptr);
  EXPECT_NE(arena_->Allocate(kArenaBytes), nullptr);
  EXPECT_EQ(arena_->Allocate(1), nullptr);
}

TEST_F(ShmArenaTest, KnowsItsOwnBytesFromOthers) {
  const std::vector<std::byte> other(100);
  EXPECT_EQ(arena_->OffsetOf(other), std::nullopt);
  std::byte* const first = arena_->Allocate(100);
  std::byte* const second = arena_->Allocate(100);
  EXPECT_EQ(*arena_->OffsetOf({second, 100}) - *arena_->OffsetOf({first, 100}), 128u);
}

TEST_F(ShmArenaTest, CountsWhatIsLentByProcess) {
  const auto one = arena_->LentTo(7);
  EXPECT_EQ(arena_->LentTo(7), one);
  EXPECT_NE(arena_->LentTo(8), one);
  EXPECT_NE(arena_->LentTo(0), arena_->LentTo(0)) << "processes without a name share nothing";
}

TEST_F(ShmArenaTest, SmallFramesOfItsPoolAreElsewhere) {
  FramePool frames(arena_);
  const Frame small = frames.Make(arena_->bytes_min() - 1),
              large = frames.Make(arena_->bytes_min());
  EXPECT_FALSE(arena_->OffsetOf(small.bytes()).has_value());
  EXPECT_TRUE(arena_->OffsetOf(large.bytes()).has_value());
}

// Sealed memory never returns pages to the system, so freed addresses must be reusable for other
// sizes.
TEST_F(ShmArenaTest, AddressesServeAnySizeAgain) {
  FramePool frames(arena_);
  size_t most = 0;
  for (size_t bytes = size_t{700} << 20; bytes < size_t{1000} << 20; bytes += 30 << 20) {
    const Frame frame = frames.Make(bytes);
    most = std::max(most, *arena_->OffsetOf(frame.bytes()));
  }
  EXPECT_LT(most, size_t{2} << 30);
}

}  // namespace
}  // namespace dt
