// Goal: a machine whose workers are in the others' way again and again keeps them out for longer
// and longer. Method: a clock of the test.
#include "scheduler/membership/rests.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

TEST(RestsTest, TheFirstTimeCostsNothing) {
  Rests rests;
  const TimePoint begin = TimePoint() + seconds(10);
  EXPECT_EQ(rests.Left(begin, "a"), Duration());
  rests.OnInTheWay(begin, "a");
  EXPECT_EQ(rests.Left(begin, "a"), Duration());
}

TEST(RestsTest, EachFurtherOneDoublesTheRestOfItsMachineAlone) {
  Rests rests;
  TimePoint now = TimePoint() + seconds(10);
  rests.OnInTheWay(now, "a");
  for (const int minutes : {1, 2, 4, 8, 16, 16}) {
    rests.OnInTheWay(now, "a");
    EXPECT_EQ(rests.Left(now, "a"), minutes * seconds(60));
    EXPECT_EQ(rests.Left(now + seconds(20), "a"), minutes * seconds(60) - seconds(20));
    EXPECT_EQ(rests.Left(now, "b"), Duration());
    now += minutes * seconds(60);
    EXPECT_EQ(rests.Left(now, "a"), Duration());
  }
}

TEST(RestsTest, AnHourIsForgotten) {
  Rests rests;
  TimePoint now = TimePoint() + seconds(10);
  rests.OnInTheWay(now, "a");
  now += seconds(3601);
  rests.OnInTheWay(now, "a");
  EXPECT_EQ(rests.Left(now, "a"), Duration());
  now += seconds(3600);
  rests.OnInTheWay(now, "a");
  EXPECT_EQ(rests.Left(now, "a"), seconds(60));
}

}  // namespace
}  // namespace dt::scheduler
