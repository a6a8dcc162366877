#include "server/table/key_index.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace dt::server {
namespace {

// Inserts the key if it is absent; returns its row.
uint32_t FindOrInsert(KeyIndex& index, Key key, uint32_t row) {
  if (index.Find(key) == KeyIndex::kAbsent) index.Insert(key, row);
  return index.Find(key);
}

TEST(KeyIndex, EmptyFindsNothing) {
  const KeyIndex index(1);
  EXPECT_EQ(index.Find(0), KeyIndex::kAbsent);
  EXPECT_EQ(index.size(), 0u);
}

TEST(KeyIndex, NoKeyIsSpecial) {
  KeyIndex index(1);
  const Key keys[] = {0, ~Key{0}, Key{1} << 63, 1, ~Key{0} - 1};
  for (uint32_t i = 0; i < std::size(keys); ++i) EXPECT_EQ(FindOrInsert(index, keys[i], i), i);
  for (uint32_t i = 0; i < std::size(keys); ++i) EXPECT_EQ(index.Find(keys[i]), i);
  EXPECT_EQ(index.Find(2), KeyIndex::kAbsent);
}

TEST(KeyIndex, EveryKeyIsFoundAtEveryMomentOfGrowth) {
  KeyIndex index(7);
  constexpr uint32_t kKeys = 3000;
  for (uint32_t n = 0; n < kKeys; ++n) {
    ASSERT_EQ(FindOrInsert(index, n * 977u, n), n);
    ASSERT_EQ(FindOrInsert(index, n * 977u, n + 1), n);  // The key is found and not inserted again.
    for (uint32_t i = 0; i <= n; i += 1 + n / 50) ASSERT_EQ(index.Find(i * 977u), i) << n;
    ASSERT_EQ(index.Find(n * 977u + 1), KeyIndex::kAbsent);
  }
  EXPECT_EQ(index.size(), kKeys);
}

// The key with this hash under salt 0; it inverts the finalizer of SplitMix64.
Key KeyWithHash(uint64_t hash) {
  uint64_t x = std::rotl(hash, 32);
  x ^= x >> 31 ^ x >> 62;
  x *= 0x319642b2d24d8ec3ull;
  x ^= x >> 27 ^ x >> 54;
  x *= 0x96de1b173f119089ull;
  return x ^ x >> 30 ^ x >> 60;
}

// The hardest case of growth: one long run of colliding keys, at any position, also across the end.
TEST(KeyIndex, CollidingKeysSpillIntoTheNextBuckets) {
  ASSERT_EQ(std::rotl(MixBits(KeyWithHash(12345)), 32), 12345u);
  for (const uint64_t home : {uint64_t{0}, ~uint64_t{0} / 3, ~uint64_t{0} - 5000}) {
    KeyIndex index(0);
    std::vector<Key> keys;
    for (uint32_t i = 0; i < 2000; ++i) {
      // Every other key is elsewhere, so that there are also single keys to move.
      keys.push_back(i % 2 == 0 ? KeyWithHash(home + i) : Key{i});
      ASSERT_EQ(FindOrInsert(index, keys[i], i), i);
      for (uint32_t k = 0; k <= i; k += 1 + i / 50) ASSERT_EQ(index.Find(keys[k]), k) << i;
    }
    for (uint32_t i = 0; i < keys.size(); ++i) ASSERT_EQ(index.Find(keys[i]), i);
  }
}

// Compared with a map while the index grows, with keys that crowd a few buckets.
TEST(KeyIndex, EqualsAMapThroughInsertionsAndErasures) {
  for (const uint64_t spread : {uint64_t{3}, uint64_t{1} << 30, ~uint64_t{0}}) {
    KeyIndex index(0);
    std::map<Key, uint32_t> map;
    uint64_t random = 1;
    for (uint32_t i = 0; i < 40'000; ++i) {
      random = MixBits(random + i);
      const Key key = KeyWithHash(random % 3000 * (spread / 3000 + 1));
      if (map.contains(key) && random >> 63 == 0) {
        index.Erase(key);
        map.erase(key);
      } else if (!map.contains(key)) {
        index.Insert(key, i);
        map[key] = i;
      }
      ASSERT_EQ(index.size(), map.size());
      const auto it = map.find(key);
      ASSERT_EQ(index.Find(key), it == map.end() ? KeyIndex::kAbsent : it->second);
    }
    for (const auto& [key, row] : map) ASSERT_EQ(index.Find(key), row);
    for (const auto& [key, row] : std::map(map)) index.Erase(key);
    EXPECT_EQ(index.size(), 0u);
    for (const auto& [key, row] : map) ASSERT_EQ(index.Find(key), KeyIndex::kAbsent);
  }
}

TEST(KeyIndex, WalkMeetsEveryKeyThatStaysWhateverHappensBetween) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    KeyIndex index(seed);
    std::set<Key> staying, passing;
    for (uint64_t k = 0; k < 500 + 77 * seed; ++k) {
      index.Insert(MixBits(k), 0);
      staying.insert(MixBits(k));
    }
    std::vector<KeyRow> met;
    uint64_t made = 1u << 20;
    for (uint64_t at = 0; at != KeyIndex::kEnd;) {
      at = index.Walk(at, 1 + seed % 5, met);
      for (uint64_t n = MixBits(at) % 40; n > 0; --n) {
        const Key key = MixBits(++made);
        index.Insert(key, 1);
        passing.insert(key);
        if (n % 3 != 0) continue;
        index.Erase(*passing.begin());
        passing.erase(passing.begin());
      }
    }
    for (const KeyRow& row : met) staying.erase(row.key);
    EXPECT_TRUE(staying.empty()) << staying.size() << " not met, seed " << seed;
  }
}

TEST(KeyIndex, SweepsGiveUpWhatIsNotTouched) {
  KeyIndex index(1);
  for (Key k = 0; k < 1000; ++k) index.Insert(k, static_cast<uint32_t>(k));
  std::vector<KeyRow> cold;
  index.Sweep(index.buckets(), cold);
  EXPECT_TRUE(cold.empty());  // New keys are spared once.
  for (Key k = 0; k < 1000; k += 2) index.Touch(index.HashOf(k), k);
  index.Sweep(index.buckets() / 2, cold);
  index.Sweep(index.buckets() - index.buckets() / 2, cold);
  std::set<Key> keys;
  for (const KeyRow& row : cold) keys.insert(row.key);
  EXPECT_EQ(cold.size(), keys.size());
  EXPECT_EQ(keys.size(), 500u);
  for (const Key k : keys) EXPECT_EQ(k % 2, 1u);
}

// Each key is inserted once and removed in the order of the clock hand, while the index is as full
// as it can be.
TEST(KeyIndex, NeverFillsUpBeforeTheHand) {
  constexpr Key kFirst = 3200;
  KeyIndex index(1);
  for (Key key = 0; key < kFirst; ++key) index.Insert(key, 7, 0);
  const uint64_t most = index.buckets() * 66 / 20;
  std::vector<KeyRow> cold;
  for (Key key = kFirst; key < kFirst + 100'000; ++key) {
    index.Insert(key, 7, 0);
    while (index.size() > most) {
      cold.clear();
      index.Sweep(1, cold);
      for (const KeyRow& row : cold) index.Erase(row.key);
    }
  }
  // Visits one bucket and its overflow at a time.
  std::vector<KeyRow> run;
  for (uint64_t at = 0; at != KeyIndex::kEnd;) {
    run.clear();
    at = index.Walk(at, 1, run);
    ASSERT_LT(run.size(), 300);
  }
}

TEST(KeyIndex, HoldsManyKeysInFewBytes) {
  KeyIndex index(5);
  uint64_t most = 0;
  for (uint32_t n = 0; n < 300'000; ++n) {
    index.Insert(n * 31u, n);
    if (n >= 1000) most = std::max(most, index.bytes() * 1000 / index.size());
  }
  EXPECT_LE(most, 24'000u);
  for (uint32_t n = 0; n < 300'000; ++n) ASSERT_EQ(index.Find(n * 31u), n);
}

TEST(KeyIndex, ListsEachKeyOnceEvenWhileGrowing) {
  KeyIndex index(3);
  for (uint32_t n = 0; n < 500; ++n) {
    FindOrInsert(index, n, n);
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
    for (uint32_t n = 0; n < keys; ++n) ASSERT_EQ(FindOrInsert(index, n, n), n);
    EXPECT_EQ(index.bytes(), bytes) << "grew although there was room for " << keys;
  }
}

}  // namespace
}  // namespace dt::server
