#include "common/base/hash.h"

#include <vector>

#include <gtest/gtest.h>

namespace dt {
namespace {

// The first is xxHash's documented value for empty input. File formats depend on these values, so
// they must never change.
TEST(Hash, ValuesStay) {
  EXPECT_EQ(HashString(""), 0x2d06800538d394c2ull);
  EXPECT_EQ(TableIdOf("item").value(), HashString("item"));
  EXPECT_EQ(MixBits(0), 0u);
  EXPECT_EQ(HashBytes({}), HashString(""));
}

TEST(Hash, MixingIsUndone) {
  // The inverse of each step exists, so no two inputs have the same hash.
  const auto unmix = [](uint64_t x) {
    x ^= x >> 31 ^ x >> 62;
    x *= 0x319642b2d24d8ec3ull;
    x ^= x >> 27 ^ x >> 54;
    x *= 0x96de1b173f119089ull;
    x ^= x >> 30 ^ x >> 60;
    return x;
  };
  for (uint64_t x : {uint64_t{0}, uint64_t{1}, uint64_t{0x123456789abcdef}, ~uint64_t{0}}) {
    EXPECT_EQ(unmix(MixBits(x)), x);
  }
}

TEST(Hash, ShardsGetEqualPartsOfConsecutiveKeys) {
  constexpr uint32_t kShards = 64, kKeys = 64'000;
  std::vector<uint32_t> count(kShards);
  for (Key key = 0; key < kKeys; ++key) {
    const ShardId shard = ShardOf(TableIdOf("item"), key, kShards);
    ASSERT_LT(shard.value(), kShards);
    ++count[shard.value()];
  }
  // The bound is six standard deviations from 1,000.
  for (const uint32_t c : count) EXPECT_NEAR(c, 1000, 190);
}

TEST(Hash, TablesAreShardedApart) {
  uint32_t equal = 0;
  for (Key key = 0; key < 6400; ++key) {
    equal += ShardOf(TableIdOf("a"), key, 64) == ShardOf(TableIdOf("b"), key, 64);
  }
  EXPECT_NEAR(equal, 100, 60);
}

}  // namespace
}  // namespace dt
