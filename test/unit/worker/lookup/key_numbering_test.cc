// Method: comparison with a map, over batches of random and adversarial keys, with one object.
#include "worker/lookup/key_numbering.h"

#include <random>
#include <unordered_map>

#include <gtest/gtest.h>

namespace dt::worker {
namespace {

void ExpectAsMap(KeyNumbering& numbering, const std::vector<std::vector<Key>>& calls) {
  size_t total = 0;
  for (const auto& keys : calls) total += keys.size();
  numbering.Begin(total);
  std::unordered_map<Key, uint32_t> map;
  std::vector<Key> distinct, expected_distinct;
  for (const std::vector<Key>& keys : calls) {
    std::vector<uint32_t> numbers(keys.size()), expected;
    numbering.Number(keys, numbers, distinct);
    for (const Key key : keys) {
      const auto [at, added] = map.try_emplace(key, static_cast<uint32_t>(map.size()));
      if (added) expected_distinct.push_back(key);
      expected.push_back(at->second);
    }
    ASSERT_EQ(numbers, expected);
  }
  ASSERT_EQ(distinct, expected_distinct);
}

TEST(KeyNumberingTest, EqualsAMapOverManyBatches) {
  KeyNumbering numbering;
  std::mt19937_64 random(7);
  for (int batch = 0; batch < 200; ++batch) {
    std::vector<std::vector<Key>> calls(1 + random() % 3);
    const uint64_t vocabulary = 1 + random() % 5000;
    for (auto& keys : calls) {
      keys.resize(random() % 3000);
      for (Key& key : keys) key = random() % vocabulary * 0x9e3779b97f4a7c15ull;
    }
    ExpectAsMap(numbering, calls);
  }
}

TEST(KeyNumberingTest, ExtremeKeysAreKeys) {
  KeyNumbering numbering;
  ExpectAsMap(numbering, {{0, ~Key{0}, 1, 0, ~Key{0}, Key{1} << 63}});
}

TEST(KeyNumberingTest, AnEmptyBatchHasNoKeys) {
  KeyNumbering numbering;
  ExpectAsMap(numbering, {{}});
  ExpectAsMap(numbering, {});
}

TEST(KeyNumberingTest, KeysOfTheBatchBeforeAreForgotten) {
  KeyNumbering numbering;
  ExpectAsMap(numbering, {{1, 2, 3}});
  ExpectAsMap(numbering, {{3, 2, 1}});
}

}  // namespace
}  // namespace dt::worker
