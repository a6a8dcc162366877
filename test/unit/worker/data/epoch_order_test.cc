// Goal: an epoch visits each row once, in an order that depends only on (seed, epoch, rows,
// window), and steps and slices divide it without gaps. Method: every combination of small sizes.
#include "worker/data/epoch_order.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dt::worker {
namespace {

std::vector<uint64_t> OrderOf(EpochOrder order, uint64_t rows) {
  std::vector<uint64_t> out;
  order.Rows(0, rows, out);
  return out;
}

bool IsPermutation(std::vector<uint64_t> order, uint64_t rows) {
  std::sort(order.begin(), order.end());
  for (uint64_t i = 0; i < order.size(); ++i) {
    if (order[i] != i) return false;
  }
  return order.size() == rows;
}

TEST(EpochOrder, IsAPermutationForAllSizes) {
  for (const uint64_t rows : {1, 2, 3, 7, 64, 65, 100, 1000}) {
    for (const uint64_t window : {0, 1, 2, 3, 7, 64, 99, 100, 101, 100000}) {
      for (const uint64_t epoch : {0, 1, 5}) {
        ASSERT_TRUE(IsPermutation(OrderOf(EpochOrder(9, epoch, rows, window), rows), rows))
            << "rows " << rows << " window " << window << " epoch " << epoch;
      }
    }
  }
}

TEST(EpochOrder, WindowZeroIsTheIdentity) {
  EXPECT_THAT(OrderOf(EpochOrder(9, 3, 5, 0), 5), testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(EpochOrder, NoRowsGiveNothing) { EXPECT_TRUE(OrderOf(EpochOrder(9, 3, 0, 16), 0).empty()); }

TEST(EpochOrder, AnyCutGivesTheSameRows) {
  const std::vector<uint64_t> whole = OrderOf(EpochOrder(1, 2, 1003, 64), 1003);
  for (const uint64_t piece : {1, 5, 64, 100, 1002}) {
    EpochOrder order(1, 2, 1003, 64);
    std::vector<uint64_t> rows;
    for (uint64_t at = 0; at < 1003; at += piece) {
      order.Rows(at, std::min<uint64_t>(1003, at + piece), rows);
    }
    ASSERT_EQ(rows, whole) << piece;
  }
  EpochOrder backwards(1, 2, 1003, 64);
  for (uint64_t at = 1003; at-- > 0;) {
    std::vector<uint64_t> row;
    backwards.Rows(at, at + 1, row);
    ASSERT_EQ(row, std::vector<uint64_t>{whole[at]}) << at;
  }
}

TEST(EpochOrder, SeedAndEpochChangeIt) {
  const auto base = OrderOf(EpochOrder(1, 0, 500, 64), 500);
  EXPECT_NE(base, OrderOf(EpochOrder(2, 0, 500, 64), 500));
  EXPECT_NE(base, OrderOf(EpochOrder(1, 1, 500, 64), 500));
  EXPECT_EQ(base, OrderOf(EpochOrder(1, 0, 500, 64), 500));
}

// The order is part of a job's meaning: a resumed run must use the order of the run that wrote the
// checkpoint.
TEST(EpochOrder, ValuesStay) {
  EXPECT_THAT(OrderOf(EpochOrder(2026, 1, 10, 4), 10),
              testing::ElementsAre(8, 7, 9, 0, 1, 2, 3, 4, 6, 5));
}

TEST(EpochOrder, RowsOfAWindowStayTogether) {
  const uint64_t rows = 256, window = 32;
  const auto order = OrderOf(EpochOrder(5, 0, rows, window), rows);
  for (uint64_t w = 0; w < rows / window; ++w) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < window; ++i) {
      seen.insert((order[w * window + i] + rows - order[w * window]) % rows);
    }
    for (const uint64_t distance : seen) {
      ASSERT_TRUE(distance < window || distance > rows - window) << w;
    }
  }
}

// The mean position of a row over many epochs is the middle: no row is always early.
TEST(EpochOrder, PlacesAreEven) {
  const uint64_t rows = 40;
  const int epochs = 4000;
  std::vector<double> place(rows);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const auto order = OrderOf(EpochOrder(77, static_cast<uint64_t>(epoch), rows, 7), rows);
    for (uint64_t i = 0; i < rows; ++i) place[order[i]] += static_cast<double>(i) / epochs;
  }
  // A uniform position has standard deviation 11.5, its mean over 4000 epochs 0.18.
  for (uint64_t row = 0; row < rows; ++row) EXPECT_NEAR(place[row], 19.5, 1.0) << row;
}

TEST(StepRange, CutsTheEpoch) {
  for (const uint64_t rows : {0, 1, 9, 10, 11, 35}) {
    uint64_t at = 0;
    for (uint64_t step = 0; step < 6; ++step) {
      const SampleRange range = StepRange(rows, 10, step);
      ASSERT_EQ(range.begin, at);
      ASSERT_EQ(range.size(), std::min<uint64_t>(10, rows - at));
      at = range.end;
    }
    EXPECT_EQ(at, rows);
  }
  EXPECT_EQ(StepRange(100, 10, ~uint64_t{0}).size(), 0u);
}

TEST(SliceRange, CoversTheStepWithEqualFirstSlices) {
  for (uint64_t count = 0; count <= 20; ++count) {
    for (uint32_t n = 1; n <= 8; ++n) {
      const uint64_t each = (count + n - 1) / n;
      uint64_t at = 100;
      for (SliceIndex k = 0; k < n; ++k) {
        const SampleRange slice = SliceRange({100, 100 + count}, k, n);
        ASSERT_EQ(slice.begin, at) << count << " " << n << " " << k;
        ASSERT_EQ(slice.size(), std::min(each, 100 + count - at));
        at = slice.end;
      }
      ASSERT_EQ(at, 100 + count);
    }
  }
}

}  // namespace
}  // namespace dt::worker
