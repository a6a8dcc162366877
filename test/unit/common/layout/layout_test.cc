#include "common/layout/layout.h"

#include <gtest/gtest.h>

#include "common/layout/transfer.h"
#include "test/support/cut_dims.h"

namespace dt {
namespace {

std::vector<int64_t> Lengths(const Layout& layout, const Shape& shape) {
  std::vector<int64_t> lengths;
  for (DeviceIndex i = 0; i < DeviceCount(layout.matrix); ++i) {
    lengths.push_back(LocalShape(layout, shape, i)[0]);
  }
  return lengths;
}

TEST(Layout, FirstDevicesHaveMoreOfAnUnevenDimension) {
  EXPECT_EQ(Lengths({.matrix = {4}, .dims = {Over({0})}}, {5}), (Shape{2, 2, 1, 0}));
  EXPECT_EQ(Lengths({.matrix = {4, 2}, .dims = {Over({0, 1})}}, {18}),
            (Shape{3, 2, 3, 2, 3, 2, 2, 1}));
  EXPECT_EQ(Lengths({.matrix = {8}, .dims = {Over({0})}}, {18}), (Shape{3, 3, 3, 3, 3, 3, 0, 0}));
  EXPECT_EQ(Lengths({.matrix = {3}, .dims = {Over({0})}}, {0}), (Shape{0, 0, 0}));
}

TEST(Layout, AnotherOrderOfAxesGivesOtherSlices) {
  const Layout layout{.matrix = {2, 3}, .dims = {Over({1, 0})}};
  EXPECT_EQ(SliceOf(layout, {12}, 1), (Slice{{{4, 6}}}));
  EXPECT_EQ(SliceOf(layout, {12}, 3), (Slice{{{2, 4}}}));
}

TEST(Layout, ACutInnerFactorGivesSeveralRanges) {
  Layout layout{.matrix = {2}, .dims = {{{.size = 3}, {.size = 4, .axes = {0}}}}};
  EXPECT_EQ(SliceOf(layout, {12}, 1), (Slice{{{2, 4}, {6, 8}, {10, 12}}}));
  layout.dims[0][0].size = 0;
  EXPECT_EQ(SliceOf(layout, {12}, 0), (Slice{{{0, 2}, {4, 6}, {8, 10}}}));
  EXPECT_EQ(LocalShape(layout, {12}, 0), (Shape{6}));
}

TEST(Layout, GivenLengthsOfParts) {
  const Layout layout{.matrix = {3, 2}, .dims = {{{.size = 0, .axes = {0}, .parts = {5, 0, 2}}}}};
  EXPECT_EQ(Lengths(layout, {7}), (Shape{5, 5, 0, 0, 2, 2}));
  EXPECT_EQ(SliceOf(layout, {7}, 4), (Slice{{{5, 7}}}));
}

TEST(Layout, GroupsAgreeOnAllOtherAxes) {
  const DeviceMatrix matrix = {2, 3, 2};
  const AxisList middle = {1}, outer_and_inner = {0, 2}, reversed = {2, 0};
  EXPECT_EQ(GroupOf(matrix, middle, 9), (RankList{7, 9, 11}));
  EXPECT_EQ(GroupOf(matrix, outer_and_inner, 9), (RankList{2, 3, 8, 9}));
  EXPECT_EQ(GroupOf(matrix, reversed, 9), (RankList{2, 8, 3, 9}));
  EXPECT_EQ(GroupsAlong(matrix, middle).size(), 4U);
  EXPECT_EQ(GroupsAlong(matrix, {}).size(), 12U);
}

TEST(Layout, ReplicasHoldTheSameSlice) {
  const Layout layout{.matrix = {2, 3, 2}, .dims = {Over({1})}, .partial = {0}};
  EXPECT_EQ(CopyAxes(layout), (AxisList{2}));
  EXPECT_EQ(ReplicasOf(layout, 9), (RankList{8, 9}));
}

// By position of a matrix: how many devices hold it.
std::vector<size_t> HoldersOf(const Layout& layout, const Shape& shape) {
  std::vector<size_t> holders(static_cast<size_t>(ElementCount(shape)), 0);
  for (DeviceIndex i = 0; i < DeviceCount(layout.matrix); ++i) {
    for (const Box& box : BoxesOf(SliceOf(layout, shape, i))) {
      for (int64_t e = 0; e < ElementsOf(box); ++e) {
        const int64_t row = box[0].begin + e / box[1].size();
        const int64_t column = box[1].begin + e % box[1].size();
        ++holders[static_cast<size_t>(row * shape[1] + column)];
      }
    }
  }
  return holders;
}

TEST(Layout, SlicesCoverEveryPositionEquallyOften) {
  const std::vector<Layout> layouts = {
      {.matrix = {2, 3, 2}, .dims = {Over({2, 0}), Over({1})}},
      {.matrix = {2, 3, 2}, .dims = {Over({}), Over({1, 0})}},
      {.matrix = {12}, .dims = {Over({}), Over({0})}},
      {.matrix = {4, 3}, .dims = {{{.size = 0, .axes = {1}}, {.size = 5, .axes = {0}}}, {}}},
  };
  const Shape shape = {35, 7};
  for (const Layout& layout : layouts) {
    ASSERT_TRUE(CheckLayout(layout, shape).ok());
    EXPECT_EQ(HoldersOf(layout, shape), std::vector<size_t>(35 * 7, ReplicasOf(layout, 0).size()));
    for (DeviceIndex i = 0; i < 12; ++i) {
      const Slice slice = SliceOf(layout, shape, i);
      EXPECT_EQ(ShapeOf(slice), LocalShape(layout, shape, i));
      for (const uint32_t replica : ReplicasOf(layout, i)) {
        EXPECT_EQ(SliceOf(layout, shape, replica), slice);
      }
    }
  }
}

TEST(Layout, NormalFormHasNoAxisOfOneDevice) {
  const Layout layout{.matrix = {1, 2, 1, 3}, .dims = {Over({0, 3}), Over({2})}, .partial = {1}};
  const Layout normal{.matrix = {2, 3}, .dims = {Over({1}), {}}, .partial = {0}};
  EXPECT_EQ(Normalised(layout, {6, 6}), normal);
}

TEST(Layout, NormalFormHasNoNeedlessFactor) {
  Layout layout{.matrix = {2}, .dims = {{{.size = 4, .axes = {0}}, {.size = 3}}}};
  EXPECT_EQ(Normalised(layout, {12}), (Layout{.matrix = {2}, .dims = {Over({0})}}));
  layout.dims[0] = {{.size = 3, .axes = {0}}, {.size = 4}};  // Uneven: 8 and 4, not 6 and 6.
  EXPECT_EQ(Normalised(layout, {12}), layout);
  layout.dims[0] = {{.size = 1}, {.size = 12, .axes = {0}}};
  EXPECT_EQ(Normalised(layout, {12}), (Layout{.matrix = {2}, .dims = {Over({0})}}));
  layout.ranks = {0, 1};
  EXPECT_TRUE(Normalised(layout, {12}).ranks.empty());
}

TEST(Layout, WhatDoesNotFitIsRefused) {
  const Layout good{.matrix = {2, 3}, .dims = {Over({0})}};
  EXPECT_TRUE(CheckLayout(good, {6}).ok());
  EXPECT_FALSE(CheckLayout(good, {6, 6}).ok());
  EXPECT_FALSE(CheckLayout(good, {-1}).ok());
  const auto refused = [&](auto change) {
    Layout bad = good;
    change(bad);
    return !CheckLayout(bad, {6}).ok();
  };
  EXPECT_TRUE(refused([](Layout& bad) { bad.dims[0][0].axes = {2}; }));
  EXPECT_TRUE(refused([](Layout& bad) { bad.dims[0][0].axes = {0, 0}; }));
  EXPECT_TRUE(refused([](Layout& bad) { bad.partial = {0}; }));
  EXPECT_TRUE(refused([](Layout& bad) { bad.matrix[0] = 0; }));
  EXPECT_TRUE(refused([](Layout& bad) { bad.ranks = {0, 1, 2}; }));
  EXPECT_TRUE(refused([](Layout& bad) { bad.ranks = {0, 1, 2, 3, 4, 4}; }));
  EXPECT_TRUE(refused([](Layout& bad) { bad.dims[0][0].parts = {3, 2}; }));
  EXPECT_TRUE(refused([](Layout& bad) { bad.dims[0][0].parts = {3, 4, -1}; }));
  EXPECT_TRUE(refused([](Layout& bad) { bad.dims[0].push_back({.size = 4}); }));
  EXPECT_TRUE(refused([](Layout& bad) { bad.dims[0].push_back({.size = 0}); }));
}

}  // namespace
}  // namespace dt
