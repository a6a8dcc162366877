#include "server/life/row_expiry.h"

#include <map>

#include <gtest/gtest.h>

namespace dt::server {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

TEST(RowExpiry, StepsExpire) {
  RowExpiry expiry({.expiry_steps = 10});
  expiry.MoveClock(10);
  EXPECT_FALSE(expiry.IsExpired(0)) << "steps 1 to 9 are nine";
  expiry.MoveClock(11);
  EXPECT_TRUE(expiry.IsExpired(0)) << "steps 1 to 10 did not push it";
  EXPECT_FALSE(expiry.IsExpired(1));
  EXPECT_FALSE(expiry.IsExpired(~Step{0})) << "a row that is being made";
  expiry.Reset(5);
  EXPECT_FALSE(expiry.IsExpired(0));
  expiry.Reset(100);
  EXPECT_EQ(expiry.expire_before(), 90u);
}

// A row expires after the given time, at most a 64th of it late; between those moments nothing
// changes.
TEST(RowExpiry, HoursExpire) {
  RowExpiry expiry({.expiry_time = hours(64)});
  std::map<Step, Duration> pushed;
  Duration now{};
  Step before = 0;
  for (Step clock = 0; clock < 1000; ++clock) {
    pushed[clock] = now;  // The time of the push of step `clock`.
    now += minutes(7 + clock % 20);
    expiry.PassTime(minutes(7 + clock % 20));
    EXPECT_EQ(expiry.expire_before(), before);
    expiry.MoveClock(clock + 1);
    before = expiry.expire_before();
    for (const auto& [step, at] : pushed) {
      const bool must_stay = now - at <= hours(64), must_be_gone = now - at > hours(66);
      EXPECT_FALSE(must_stay && expiry.IsExpired(step)) << step << " at " << clock;
      EXPECT_FALSE(must_be_gone && !expiry.IsExpired(step)) << step << " at " << clock;
    }
  }
  EXPECT_GT(before, 500u);
}

TEST(RowExpiry, FrozenRowsStay) {
  RowExpiry expiry({.expiry_steps = 1, .freeze = true});
  expiry.MoveClock(1000);
  EXPECT_FALSE(expiry.IsExpired(0));
}

}  // namespace
}  // namespace dt::server
