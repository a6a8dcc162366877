// Goal: a profile divides processor time over kinds of work as threads spent it, and tells how much
// they moved. Method: threads compute for known times of their own clocks.
#include "common/runtime/work_profile.h"

#include <algorithm>
#include <ctime>
#include <thread>

#include <gtest/gtest.h>

#include "common/runtime/task_pool.h"

namespace dt {
namespace {

constinit WorkKind kFirst{"first"}, kSecond{"second"}, kOuter{"outer"};

double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
void ComputeFor(double seconds) {
  const double end = ThreadSeconds() + seconds;
  while (ThreadSeconds() < end) {
  }
}

double SecondsOf(const WorkShares& shares, const WorkKind& kind) {
  double seconds = 0;
  for (const WorkShare& share : shares.shares) {
    if (share.work == &kind) seconds += share.seconds;
  }
  return seconds;
}

TEST(WorkProfile, DividesTimeAsItWasSpent) {
  const auto profile = WorkProfile::Begin();
  ASSERT_TRUE(profile.ok()) << profile.status();
  {
    const WorkSpan outer(kOuter);
    ComputeFor(0.5);
    const WorkSpan inner(kFirst);
    ComputeFor(1);
    kFirst.Count(100, 7);
    kFirst.Count(1);
  }
  EXPECT_EQ(&WorkSpan::current(), &kUnnamedWork);
  const WorkShares shares = (*profile)->Finish();
  EXPECT_NEAR(SecondsOf(shares, kOuter), 0.5, 0.2);
  EXPECT_NEAR(SecondsOf(shares, kFirst), 1, 0.3);
  EXPECT_GE(shares.cpu_seconds, 1.4);
  EXPECT_GE(shares.wall_seconds, shares.cpu_seconds * 0.9);
  const auto moved = std::ranges::find(shares.moved, &kFirst, &WorkShares::Moved::work);
  ASSERT_NE(moved, shares.moved.end());
  EXPECT_EQ(moved->bytes, 101u);
  EXPECT_EQ(moved->flops, 7u);
}

TEST(WorkProfile, CountsNothingOfOtherTimes) {
  kSecond.Count(5);
  const auto profile = WorkProfile::Begin();
  ASSERT_TRUE(profile.ok()) << profile.status();
  {
    const WorkSpan span(kSecond);
    ComputeFor(0.2);
  }
  const WorkShares shares = (*profile)->Finish();
  ComputeFor(0.2);
  double seconds = 0;
  for (const WorkShare& share : shares.shares) seconds += share.seconds;
  EXPECT_NEAR(seconds, 0.2, 0.1);
  for (const WorkShares::Moved& moved : shares.moved) EXPECT_EQ(moved.bytes, 0u);
}

TEST(WorkProfile, PiecesOfALoopAreTheWorkOfItsCaller) {
  TaskPool pool(2);
  pool.ParallelFor(64, 1, [](size_t, size_t) { ComputeFor(0.001); });  // Starts the threads.
  const auto profile = WorkProfile::Begin();
  ASSERT_TRUE(profile.ok()) << profile.status();
  {
    const WorkSpan span(kFirst);
    pool.ParallelFor(200, 1, [](size_t, size_t) { ComputeFor(0.005); });
  }
  const WorkShares shares = (*profile)->Finish();
  EXPECT_NEAR(SecondsOf(shares, kFirst), 1, 0.3);
}

}  // namespace
}  // namespace dt
