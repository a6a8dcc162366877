// Goal: the parts of a slice's samples cover it once for every number of samples, and a part of a
// part is a part; their names are read back.
#include "common/layout/sample_part.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(SamplePart, PartsCoverTheSamplesInOrder) {
  for (const uint32_t devices : {1, 2, 3, 4, 6, 8}) {
    for (const int64_t n : {0, 1, 5, 7, 8, 24, 100}) {
      int64_t end = 0;
      for (uint32_t d = 0; d < devices; ++d) {
        const Range part = SamplesOf({devices, 1}, n, devices, d);
        EXPECT_EQ(part.begin, end);
        end = part.end;
      }
      EXPECT_EQ(end, n);
    }
  }
}

TEST(SamplePart, AHalfIsTheQuartersInIt) {
  for (const int64_t n : {1, 6, 9, 13, 64}) {
    for (uint32_t d = 0; d < 8; ++d) {
      const Range half = SamplesOf({2, 4}, n, 8, d);
      const uint32_t first = d / 4 * 4;
      EXPECT_EQ(half.begin, SamplesOf({2, 4, 4, 1}, n, 8, first).begin);
      EXPECT_EQ(half.end, SamplesOf({2, 4, 4, 1}, n, 8, first + 3).end);
      EXPECT_EQ(SamplesOf({8, 1}, n, 8, d), SamplesOf({2, 4, 4, 1}, n, 8, d));
    }
  }
  EXPECT_EQ(SamplesOf({}, 9, 4, 2), (Range{0, 9}));
}

TEST(SamplePart, NamesAreReadBack) {
  for (const SamplePart& part : {SamplePart{4, 2}, SamplePart{2, 6, 3, 1}}) {
    EXPECT_EQ(SamplePartOf(SymbolOf(part)), part);
  }
  EXPECT_EQ(SymbolOf({4, 2}), "B/4s2");
  EXPECT_EQ(SymbolOf({}), "B");
  for (const char* const other : {"B", "N.item", "B/", "B/4", "B/4s", "B/s2", "B/4s2/", "B/4s0"}) {
    EXPECT_TRUE(SamplePartOf(other).empty()) << other;
  }
}

TEST(HeldBy, NamesWhoHoldsASliceAndWhoseValuesAreTerms) {
  // Columns are cut over the last axis; the first has terms, the second copies.
  const Layout layout{.matrix = {2, 2, 2}, .dims = {{}, {{.axes = {2}}}}, .partial = {0}};
  EXPECT_EQ(MembersOf(HeldBy(layout).group, 5), (RankList{1, 3, 5, 7}));
  EXPECT_EQ(MembersOf(HeldBy(layout).terms, 5), (RankList{1, 5}));
  EXPECT_EQ(MembersOf(HeldBy(layout).group, 2), (RankList{0, 2, 4, 6}));
  EXPECT_EQ(MembersOf(HeldBy(layout).terms, 2), (RankList{0, 4}));
}

}  // namespace
}  // namespace dt
