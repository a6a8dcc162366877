#include "server/table/key_index.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace dt::server {
namespace {

TEST(KeyIndex, EmptyFindsNothing) {
  const KeyIndex index(1);
  EXPECT_EQ(index.Find(0), KeyIndex::kAbsent);
  EXPECT_EQ(index.size(), 0u);
}

TEST(KeyIndex, NoKeyIsSpecial) {
  KeyIndex index(1);
  const Key keys[] = {0, ~Key{0}, Key{1} << 63, 1, ~Key{0} - 1};
  for (uint32_t i = 0; i < std::size(keys); ++i) EXPECT_EQ(index.FindOrInsert(keys[i], i), i);
  for (uint32_t i = 0; i < std::size(keys); ++i) EXPECT_EQ(index.Find(keys[i]), i);
  EXPECT_EQ(index.Find(2), KeyIndex::kAbsent);
}

TEST(KeyIndex, EveryKeyIsFoundAtEveryMomentOfGrowth) {
  KeyIndex index(7);
  constexpr uint32_t kKeys = 3000;
  for (uint32_t n = 0; n < kKeys; ++n) {
    ASSERT_EQ(index.FindOrInsert(n * 977u, n), n);
    ASSERT_EQ(index.FindOrInsert(n * 977u, n + 1), n);  // Found, not inserted again.
    for (uint32_t i = 0; i <= n; i += 1 + n / 50) ASSERT_EQ(index.Find(i * 977u), i) << n;
    ASSERT_EQ(index.Find(n * 977u + 1), KeyIndex::kAbsent);
  }
  EXPECT_EQ(index.size(), kKeys);
}

// Keys that all hash to one bucket: MixBits is a bijection, so equal low bits can be made.
TEST(KeyIndex, CollidingKeysSpillIntoTheNextBuckets) {
  KeyIndex index(0);
  std::vector<Key> keys;
  for (Key key = 0; keys.size() < 60; ++key) {
    if (MixBits(key) % 64 == 63) keys.push_back(key);  // The last bucket: spills wrap around.
  }
  for (uint32_t i = 0; i < keys.size(); ++i) ASSERT_EQ(index.FindOrInsert(keys[i], i), i);
  for (uint32_t i = 0; i < keys.size(); ++i) ASSERT_EQ(index.Find(keys[i]), i);
}

TEST(KeyIndex, ListsEachKeyOnceEvenWhileGrowing) {
  KeyIndex index(3);
  for (uint32_t n = 0; n < 500; ++n) {
    index.FindOrInsert(n, n);
    std::vector<KeyRow> rows;
    index.AppendTo(rows);
    std::ranges::sort(rows);
    ASSERT_EQ(rows.size(), n + 1);
    for (uint32_t i = 0; i <= n; ++i) ASSERT_EQ(rows[i], (KeyRow{i, i}));
  }
}

TEST(KeyIndex, ResetEmptiesWhateverTheSizeBefore) {
  KeyIndex index(3);
  for (const uint32_t keys : {1000u, 3u, 200u, 5000u, 0u}) {
    index.Reset(keys);
    EXPECT_EQ(index.size(), 0u);
    for (uint32_t n = 0; n < 1000; ++n) ASSERT_EQ(index.Find(n), KeyIndex::kAbsent);
    const uint64_t bytes = index.bytes();
    for (uint32_t n = 0; n < keys; ++n) ASSERT_EQ(index.FindOrInsert(n, n), n);
    EXPECT_EQ(index.bytes(), bytes) << "grew although there was room for " << keys;
  }
}

}  // namespace
}  // namespace dt::server
