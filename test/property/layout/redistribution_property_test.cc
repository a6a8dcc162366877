// Goal: a redistribution between any two layouts gives every rank the right values, and never moves
// more than joining the tensor and dividing it again. Method: all layouts of up to three axes on 12
// ranks, sampled ones of four axes on 16, and pairs on different lists of ranks. Every pair is
// carried out in memory. Daily runs take a sample; DT_LAYOUT_PAIRS=all takes every pair.
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/layout/redistribute.h"
#include "test/support/held_tensor.h"

namespace dt::test {
namespace {

bool TakesAllPairs() {
  const char* pairs = std::getenv("DT_LAYOUT_PAIRS");
  return pairs != nullptr && std::string(pairs) == "all";
}

// Every way to give the axes from `axis` on to dimensions, copies or a partial sum.
void AddLayouts(const Layout& begun, AxisIndex axis, std::vector<Layout>& layouts) {
  if (axis == begun.matrix.size()) {
    layouts.push_back(begun);
    return;
  }
  AddLayouts(begun, axis + 1, layouts);
  Layout partial = begun;
  partial.partial.push_back(axis);
  AddLayouts(partial, axis + 1, layouts);
  for (size_t d = 0; d < begun.dims.size(); ++d) {
    const size_t places = begun.dims[d].empty() ? 1 : begun.dims[d][0].axes.size() + 1;
    for (size_t at = 0; at < places; ++at) {
      Layout cut = begun;
      if (cut.dims[d].empty()) cut.dims[d].emplace_back();
      AxisList& axes = cut.dims[d][0].axes;
      axes.insert(axes.begin() + static_cast<ptrdiff_t>(at), axis);
      AddLayouts(cut, axis + 1, layouts);
    }
  }
}

void AddMatrices(uint32_t devices, size_t axes, const DeviceMatrix& begun,
                 std::vector<DeviceMatrix>& matrices) {
  if (devices == 1) matrices.push_back(begun);
  if (axes == 0) return;
  for (uint32_t size = 2; size <= devices; ++size) {
    if (devices % size != 0) continue;
    DeviceMatrix longer = begun;
    longer.push_back(size);
    AddMatrices(devices / size, axes - 1, longer, matrices);
  }
}

std::vector<Layout> AllLayouts(uint32_t devices, size_t axes, size_t dims) {
  std::vector<DeviceMatrix> matrices;
  AddMatrices(devices, axes, {}, matrices);
  std::vector<Layout> layouts;
  for (const DeviceMatrix& matrix : matrices) {
    AddLayouts({.matrix = matrix, .dims = std::vector<CutDim>(dims)}, 0, layouts);
  }
  return layouts;
}

std::string TextOf(const Layout& layout) {
  std::string text = fmt::format("({})", fmt::join(layout.matrix, ","));
  for (const CutDim& dim : layout.dims) {
    text += dim.empty() ? " -" : fmt::format(" {}", fmt::join(dim[0].axes, "+"));
  }
  return text + fmt::format(" partial {}", fmt::join(layout.partial, "+"));
}

// Joining everything on every rank: what a rank receives at most.
double GatherAndSlice(const Layout& from, const Shape& shape) {
  double n = 1, most = 0;
  for (const AxisIndex axis : from.partial) n *= from.matrix[axis];
  const auto whole = static_cast<double>(ElementCount(shape));
  for (DeviceIndex i = 0; i < DeviceCount(from.matrix); ++i) {
    const auto own = static_cast<double>(ElementCount(LocalShape(from, shape, i)));
    most = std::max(most, 2 * own * (n - 1) / n + whole - own);
  }
  return most;
}

void ExpectRight(const Layout& from, const Layout& to, const Shape& shape) {
  SCOPED_TRACE(fmt::format("[{}] {} -> {}", fmt::join(shape, ","), TextOf(from), TextOf(to)));
  const auto result = Redistribute({from, shape}, {to, shape}, {});
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<double> whole(static_cast<size_t>(ElementCount(shape)));
  std::iota(whole.begin(), whole.end(), 1);
  HeldTensor held(from, shape, whole);
  for (const RedistributionStep& step : result->steps) held.Apply(step);
  ASSERT_EQ(held.by_rank(), HeldTensor(to, shape, whole).by_rank());
  ASSERT_LE(held.received(), GatherAndSlice(from, shape) + 1e-9);
  ASSERT_EQ(static_cast<int64_t>(4 * held.received()), result->bytes);
}

// Calls f for every pair whose target is not partial, or for a sample of them.
template <class F>
void ForPairs(const std::vector<Layout>& layouts, size_t sample, const F& f) {
  std::vector<Layout> targets;
  for (const Layout& layout : layouts) {
    if (layout.partial.empty()) targets.push_back(layout);
  }
  const size_t pairs = layouts.size() * targets.size();
  if (TakesAllPairs()) sample = pairs;
  std::mt19937_64 random(26);
  for (size_t i = 0; i < std::min(sample, pairs); ++i) {
    const size_t pair = sample >= pairs ? i : random() % pairs;
    f(layouts[pair % layouts.size()], targets[pair / layouts.size()]);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Redistribution, AllPairsOnTwelveRanks) {
  const std::vector<Layout> layouts = AllLayouts(12, 3, 2);
  for (const Shape& shape : {Shape{5, 12}, Shape{7, 5}, Shape{12, 12}, Shape{13, 7}}) {
    ForPairs(layouts, 1500,
             [&](const Layout& from, const Layout& to) { ExpectRight(from, to, shape); });
  }
}

TEST(Redistribution, ThreeDimensions) {
  const std::vector<Layout> layouts = AllLayouts(12, 3, 3);
  std::mt19937_64 random(27);
  const auto any = [&] { return random() % layouts.size(); };
  for (size_t i = 0; i < (TakesAllPairs() ? 100'000 : 1500); ++i) {
    Layout to = layouts[any()];
    to.partial.clear();
    ASSERT_NO_FATAL_FAILURE(ExpectRight(layouts[any()], to, {5, 4, 6}));
  }
}

TEST(Redistribution, FourAxesOnSixteenRanks) {
  const std::vector<Layout> layouts = AllLayouts(16, 4, 2);
  std::mt19937_64 random(28);
  const auto any = [&] { return random() % layouts.size(); };
  for (size_t i = 0; i < (TakesAllPairs() ? 50'000 : 800); ++i) {
    Layout to = layouts[any()];
    to.partial.clear();
    const Shape shape = i % 2 == 0 ? Shape{16, 16} : Shape{13, 7};
    ASSERT_NO_FATAL_FAILURE(ExpectRight(layouts[any()], to, shape));
  }
}

TEST(Redistribution, BetweenListsOfRanks) {
  std::mt19937_64 random(29);
  const std::vector<Layout> sources = AllLayouts(6, 2, 2), targets = AllLayouts(4, 2, 2);
  for (size_t i = 0; i < (TakesAllPairs() ? 20'000 : 600); ++i) {
    Layout from = sources[random() % sources.size()], to = targets[random() % targets.size()];
    to.partial.clear();
    const uint32_t shift = random() % 8;  // Apart from 6 on.
    for (uint32_t r = 0; r < 6; ++r) from.ranks.push_back(r);
    for (uint32_t r = 0; r < 4; ++r) to.ranks.push_back((r * 3) % 4 + shift);
    SCOPED_TRACE(fmt::format("[{}] {} -> {} from {}", 13, TextOf(from), TextOf(to), shift));
    const Shape shape = {13, 5};
    const auto result = Redistribute({from, shape}, {to, shape}, {});
    ASSERT_TRUE(result.ok()) << result.status();
    std::vector<double> whole(65);
    std::iota(whole.begin(), whole.end(), 1);
    HeldTensor held(from, shape, whole);
    for (const RedistributionStep& step : result->steps) held.Apply(step);
    ASSERT_EQ(held.by_rank(), HeldTensor(to, shape, whole).by_rank());
  }
}

}  // namespace
}  // namespace dt::test
