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

}  // namespace
}  // namespace dt
