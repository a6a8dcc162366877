// Goal: row gradients are added slice by slice, as a shard adds them. Method: made-up slices with
// common keys are compared with a map that adds one by one, using floats whose sum depends on the
// order.
#include "worker/exchange/row_sum.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "common/base/philox.h"

namespace dt::worker {
namespace {

struct Slice {
  std::vector<Key> keys;
  std::vector<float> grads;
};

// Every third of some keys, starting at `k`; slice 2 is empty.
Slice MakeSlice(uint64_t round, uint32_t k, size_t dim) {
  Slice slice;
  for (uint64_t i = 0; k != 2 && i < 40 + 10 * k; ++i) {
    if (Philox(round, k, i)[0] % 3 == 0) slice.keys.push_back((i + round) * 0x9e3779b97f4a7c15ull);
  }
  slice.grads.resize(slice.keys.size() * dim);
  FillNormal(round, k, slice.grads);
  return slice;
}

std::vector<float> OneByOne(std::span<const Slice> slices, size_t dim, std::vector<Key>& order) {
  std::map<Key, std::vector<float>> sums;
  for (const Slice& slice : slices) {
    for (size_t i = 0; i < slice.keys.size(); ++i) {
      const auto grad = std::span(slice.grads).subspan(i * dim, dim);
      const auto [at, is_new] = sums.try_emplace(slice.keys[i], grad.begin(), grad.end());
      if (is_new) order.push_back(slice.keys[i]);
      for (size_t d = 0; !is_new && d < dim; ++d) at->second[d] += grad[d];
    }
  }
  std::vector<float> all;
  for (const Key key : order) all.insert(all.end(), sums[key].begin(), sums[key].end());
  return all;
}

TEST(RowSumTest, EqualsALoopOverSlicesInTheirOrder) {
  RowSum sum;
  for (uint64_t round = 0; round < 6; ++round) {
    const size_t dim = 1 + round % 4, count = round == 3 ? 1 : 5;
    std::vector<Slice> slices;
    for (uint32_t k = 0; k < count; ++k) slices.push_back(MakeSlice(round, k, dim));
    std::vector<std::span<const Key>> keys;
    std::vector<std::span<const float>> grads;
    for (const Slice& slice : slices) {
      keys.push_back(slice.keys);
      grads.push_back(slice.grads);
    }
    std::vector<Key> order;
    const std::vector<float> want = OneByOne(slices, dim, order);
    sum.Begin(keys);
    EXPECT_TRUE(std::ranges::equal(sum.keys(), order)) << round;
    std::vector<float> got(want.size());
    sum.Sum(grads, dim, got);
    EXPECT_EQ(got, want) << round;
    // Another order of slices gives another sum, so the test would notice it.
    std::vector<Slice> turned(slices.rbegin(), slices.rend());
    std::vector<Key> other;
    std::vector<float> reversed = OneByOne(turned, dim, other);
    std::ranges::sort(reversed);
    std::ranges::sort(got);
    EXPECT_EQ(reversed == got, count == 1) << round;
  }
}

TEST(RowSumTest, NothingGivesNothing) {
  RowSum sum;
  const std::vector<std::span<const Key>> keys(3);
  const std::vector<std::span<const float>> grads(3);
  sum.Begin(keys);
  EXPECT_TRUE(sum.keys().empty());
  sum.Sum(grads, 4, {});
}

}  // namespace
}  // namespace dt::worker
