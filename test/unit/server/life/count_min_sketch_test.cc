#include "server/life/count_min_sketch.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "common/base/philox.h"

namespace dt::server {
namespace {

// Counts every key once.
void Count(std::span<const Key> keys, CountMinSketch& sketch) {
  std::vector<uint32_t> counts;
  for (const Key key : keys) counts.push_back(sketch.Estimate(key) + 1);
  for (size_t i = 0; i < keys.size(); ++i) sketch.RaiseTo(keys[i], counts[i]);
}

std::vector<Key> SomeKeys(uint64_t seed, uint32_t count, uint32_t space) {
  std::vector<Key> keys;
  for (uint32_t i = 0; i < count; ++i) keys.push_back(Philox(seed, 0, i)[0] % space);
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

TEST(CountMinSketch, NeverLessThanTheTruth) {
  for (const uint64_t bytes : {64u, 1024u, 65536u}) {
    CountMinSketch sketch(bytes, 5);
    std::map<Key, uint32_t> truth;
    for (uint64_t round = 0; round < 100; ++round) {
      const std::vector<Key> keys = SomeKeys(round, 50, 1000);
      Count(keys, sketch);
      for (const Key key : keys) ++truth[key];
    }
    for (const auto& [key, count] : truth) EXPECT_GE(sketch.Estimate(key), count);
  }
}

// The rule in docs/store.md: with eight bytes per key, 97 % of the keys are counted exactly.
TEST(CountMinSketch, EightBytesAKeyAreEnough) {
  constexpr uint32_t kKeys = 50'000;
  CountMinSketch sketch(8 * kKeys, 5);
  for (int round = 0; round < 3; ++round) {
    std::vector<Key> keys(kKeys);
    for (uint32_t i = 0; i < kKeys; ++i) keys[i] = i;
    Count(keys, sketch);
  }
  uint32_t exact = 0;
  for (Key key = 0; key < kKeys; ++key) exact += sketch.Estimate(key) == 3;
  EXPECT_GT(exact, kKeys * 97 / 100);
  uint32_t strangers = 0;
  for (Key key = kKeys; key < 2 * kKeys; ++key) strangers += sketch.Estimate(key) != 0;
  EXPECT_LT(strangers, kKeys * 4 / 100);
}

TEST(CountMinSketch, OrderDoesNotCount) {
  CountMinSketch one(256, 5), two(256, 5);
  for (uint64_t round = 0; round < 20; ++round) {
    std::vector<Key> keys = SomeKeys(round, 50, 300);
    Count(keys, one);
    std::ranges::reverse(keys);
    Count(keys, two);
  }
  EXPECT_TRUE(std::ranges::equal(one.bytes(), two.bytes()));
}

TEST(CountMinSketch, CopiedBytesGoOnCounting) {
  CountMinSketch one(1000, 5), two(1000, 5);
  ASSERT_EQ(one.bytes().size(), 960u);  // Whole cache lines.
  Count(SomeKeys(1, 30, 1000), one);
  std::ranges::copy(std::as_const(one).bytes(), two.bytes().begin());
  for (Key key = 0; key < 1000; ++key) EXPECT_EQ(one.Estimate(key), two.Estimate(key));
  two.Clear();
  for (Key key = 0; key < 1000; ++key) EXPECT_EQ(two.Estimate(key), 0u);
}

}  // namespace
}  // namespace dt::server
