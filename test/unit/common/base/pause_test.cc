#include "common/base/pause.h"

#include <thread>

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(Pause, TakesItsTime) {
  const TimePoint begun = SystemClock().Now();
  Pause(milliseconds(2));
  EXPECT_GE(SystemClock().Now() - begun, milliseconds(2));
}

TEST(Pause, UntilAPastTimeIsOverAtOnce) {
  const TimePoint begun = SystemClock().Now();
  PauseUntil(begun - seconds(5));
  EXPECT_LT(SystemClock().Now() - begun, seconds(1));
}

TEST(Pause, GoesToItsEndWithoutAStop) {
  const std::stop_source source;
  EXPECT_TRUE(Pause(milliseconds(1), source.get_token()));
}

TEST(Pause, EndsWithAStop) {
  std::stop_source source;
  std::jthread stops([&] { source.request_stop(); });
  const TimePoint begun = SystemClock().Now();
  EXPECT_FALSE(Pause(seconds(60), source.get_token()));
  EXPECT_LT(SystemClock().Now() - begun, seconds(30));
}

TEST(Pause, AfterAStopItIsOverAtOnce) {
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(Pause(seconds(60), source.get_token()));
}

TEST(PollUntil, EndsAsSoonAsTheConditionIsTrue) {
  int asked = 0;
  const TimePoint begun = SystemClock().Now();
  EXPECT_TRUE(PollUntil(begun + seconds(60), milliseconds(1), [&] { return ++asked == 3; }));
  EXPECT_EQ(asked, 3);
  EXPECT_GE(SystemClock().Now() - begun, milliseconds(2)) << "it waits between two checks";
}

TEST(PollUntil, GivesUpAtTheDeadline) {
  const TimePoint deadline = SystemClock().Now() + milliseconds(5);
  EXPECT_FALSE(PollUntil(deadline, milliseconds(1), [] { return false; }));
  EXPECT_GE(SystemClock().Now(), deadline);
}

TEST(PollUntil, ChecksOnceAfterTheDeadline) {
  const TimePoint past = SystemClock().Now() - seconds(1);
  int asked = 0;
  EXPECT_TRUE(PollUntil(past, seconds(60), [&] { return ++asked == 1; }));
  EXPECT_FALSE(PollUntil(past, seconds(60), [&] { return ++asked == 0; }));
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace dt
