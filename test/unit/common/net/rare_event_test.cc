#include "common/net/rare_event.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(RareEvent, TheFirstIsLoggedAndThenOneAMinute) {
  RareEvent event;
  ManualClock clock;
  EXPECT_TRUE(event.Count(clock.Now()));
  clock.Advance(seconds(59));
  EXPECT_FALSE(event.Count(clock.Now()));
  clock.Advance(seconds(1));
  EXPECT_TRUE(event.Count(clock.Now()));
  EXPECT_FALSE(event.Count(clock.Now()));
}

TEST(RareEvent, CountsThoseThatAreNotLogged) {
  RareEvent event;
  for (int i = 0; i < 3; ++i) event.Count(TimePoint());
  EXPECT_EQ(event.so_far(), 3u);
}

}  // namespace
}  // namespace dt
