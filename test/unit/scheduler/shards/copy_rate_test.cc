// Goal: the rate of copying is that of the last seconds, of all servers together. Method: reports
// made by the test.
#include "scheduler/shards/copy_rate.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

constexpr ProcessId kOne(1), kTwo(2);

TimePoint AfterSeconds(double second) {
  return TimePoint() + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(second));
}

TEST(CopyRate, IsUnknownInTheFirstSecond) {
  CopyRate rate;
  EXPECT_FALSE(rate.bytes_per_second().has_value());
  rate.OnReport(AfterSeconds(0), kOne, 0);
  rate.OnReport(AfterSeconds(0.75), kOne, 1000);
  EXPECT_FALSE(rate.bytes_per_second().has_value());
  rate.OnReport(AfterSeconds(2), kOne, 1000);
  EXPECT_EQ(rate.bytes_per_second(), 500.0);
}

TEST(CopyRate, AddsTheServers) {
  CopyRate rate;
  rate.OnReport(AfterSeconds(0), kOne, 0);
  rate.OnReport(AfterSeconds(0), kTwo, 0);
  rate.OnReport(AfterSeconds(2), kOne, 1000);
  rate.OnReport(AfterSeconds(2), kTwo, 3000);
  EXPECT_EQ(rate.bytes_per_second(), 2000.0);
}

// A scheduler that was restarted meets servers that have copied much before.
TEST(CopyRate, DoesNotCountWhatWasCopiedBeforeTheFirstReport) {
  CopyRate rate;
  rate.OnReport(AfterSeconds(0), kOne, 1'000'000);
  rate.OnReport(AfterSeconds(2), kOne, 1'000'200);
  rate.OnReport(AfterSeconds(2), kTwo, 7'000'000);
  EXPECT_EQ(rate.bytes_per_second(), 100.0);
}

TEST(CopyRate, ForgetsWhatIsLongAgo) {
  CopyRate rate;
  for (int second = 0; second <= 10; ++second)
    rate.OnReport(AfterSeconds(second), kOne, 100 * second);
  EXPECT_NEAR(rate.bytes_per_second().value_or(0), 100, 1);
  for (int second = 11; second <= 20; ++second) rate.OnReport(AfterSeconds(second), kOne, 1000);
  EXPECT_EQ(rate.bytes_per_second(), 0.0);
}

// The number of a process that has taken a server's place begins at 0.
TEST(CopyRate, NeverGoesBelowZero) {
  CopyRate rate;
  rate.OnReport(AfterSeconds(0), kOne, 5000);
  rate.OnReport(AfterSeconds(1), kOne, 0);
  rate.OnReport(AfterSeconds(2), kOne, 400);
  EXPECT_EQ(rate.bytes_per_second(), 200.0);
}

}  // namespace
}  // namespace dt::scheduler
