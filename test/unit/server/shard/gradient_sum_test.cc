#include "server/shard/gradient_sum.h"

#include <gtest/gtest.h>

namespace dt::server {
namespace {

void Begin(GradientSum& sum, size_t keys, size_t dim) {
  sum.Begin(keys, keys * dim);
  sum.BeginTable(keys, dim);
}
void Add(GradientSum& sum, const std::vector<Key>& keys, const std::vector<float>& gradients) {
  sum.Add(keys, FloatFormat::kFp32, std::as_bytes(std::span(gradients)).data());
}
std::vector<Key> KeysOf(const GradientSum& sum) { return {sum.keys().begin(), sum.keys().end()}; }
std::vector<float> SumsOf(const GradientSum& sum) { return {sum.sums().begin(), sum.sums().end()}; }

TEST(GradientSum, EqualKeysAddUpInOrder) {
  GradientSum sum;
  Begin(sum, 4, 2);
  Add(sum, {7, 0}, {1, 2, 3, 4});
  Add(sum, {0, ~Key{0}}, {10, 20, 5, 6});
  EXPECT_EQ(KeysOf(sum), (std::vector<Key>{7, 0, ~Key{0}}));
  EXPECT_EQ(SumsOf(sum), (std::vector<float>{1, 2, 13, 24, 5, 6}));
}

TEST(GradientSum, OrderOfAdditionDecidesTheBits) {
  const float a = 1e8f, b = -1e8f, c = 1.0f;
  const auto add = [](const std::vector<float>& terms) {
    GradientSum sum;
    Begin(sum, terms.size(), 1);
    for (const float t : terms) Add(sum, {1}, {t});
    return sum.sums()[0];
  };
  EXPECT_EQ(add({a, b, c}), 1.0f);
  EXPECT_EQ(add({a, c, b}), 0.0f);
}

TEST(GradientSum, KeyTwiceInOneContributionCountsTwice) {
  GradientSum sum;
  Begin(sum, 2, 1);
  Add(sum, {3, 3}, {1, 1});
  EXPECT_EQ(SumsOf(sum), std::vector<float>{2});
}

TEST(GradientSum, TablesStandSideBySide) {
  GradientSum sum;
  sum.Begin(4, 6);
  sum.BeginTable(2, 1);
  Add(sum, {7, 8}, {1, 2});
  const std::span<const float> first = sum.sums();
  sum.BeginTable(2, 2);
  Add(sum, {8, 8}, {1, 2, 3, 4});
  EXPECT_EQ(KeysOf(sum), (std::vector<Key>{8}));
  EXPECT_EQ(SumsOf(sum), (std::vector<float>{4, 6}));
  EXPECT_EQ(first[1], 2);  // The memory of the first sum has not moved.
}

TEST(GradientSum, BeginForgets) {
  GradientSum sum;
  for (const size_t keys : {500u, 2u, 900u}) {
    Begin(sum, keys, 1);
    EXPECT_TRUE(sum.keys().empty());
    for (Key key = 0; key < keys; ++key) Add(sum, {key}, {1});
    EXPECT_EQ(SumsOf(sum), std::vector<float>(keys, 1.0f));
  }
}

}  // namespace
}  // namespace dt::server
