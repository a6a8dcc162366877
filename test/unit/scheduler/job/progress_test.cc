// Goal: the progress and the speed that a job reports are right.
#include "scheduler/job/progress.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

TimePoint AtMs(int64_t ms) { return TimePoint() + milliseconds(ms); }

TEST(Pace, IsNotKnownBeforeASecondHasPassed) {
  Pace pace(AtMs(0), 0);
  pace.Update(AtMs(999), 10);
  EXPECT_EQ(pace.steps_per_second(), 0);
  pace.Update(AtMs(1000), 10);
  EXPECT_EQ(pace.steps_per_second(), 10);
}

TEST(Pace, IsThatOfTheStepsSinceItWasLastMeasured) {
  Pace pace(AtMs(0), 100);
  pace.Update(AtMs(2000), 110);
  EXPECT_EQ(pace.steps_per_second(), 5);
  pace.Update(AtMs(2500), 130);
  EXPECT_EQ(pace.steps_per_second(), 5) << "half a second is too little";
  pace.Update(AtMs(3000), 130);
  EXPECT_EQ(pace.steps_per_second(), 20);
}

TEST(Pace, StaysWhileNoStepIsDone) {
  Pace pace(AtMs(0), 0);
  pace.Update(AtMs(1000), 10);
  pace.Update(AtMs(9000), 10);
  EXPECT_EQ(pace.steps_per_second(), 10);
  pace.Update(AtMs(11000), 20);
  EXPECT_EQ(pace.steps_per_second(), 1);
}

class ProgressTest : public ::testing::Test {
 protected:
  // There are ten steps in an epoch, and three epochs.
  ProgressTest() {
    config_.train_rows = 95;
    config_.batch_size = 10;
    config_.epochs = 3;
    config_.losses = {"click"};
  }
  Progress After(Step done, Step reported, double steps_per_second = 0) {
    ScheduleState state;
    state.step = done;
    ScheduleRecord record = ScheduleFrom(config_, state);
    return ProgressOf(JobSchedule(config_, record), reported, steps_per_second);
  }
  ScheduleConfig config_;
};

TEST_F(ProgressTest, AWorkersReportIsAheadOfItsOrders) {
  EXPECT_EQ(After(12, 15).step, 15u);
  EXPECT_EQ(After(12, 3).step, 12u) << "its report is old";
  EXPECT_EQ(After(12, 99).step, 30u) << "no further than the end";
}

TEST_F(ProgressTest, AtTheEndOfAnEpochTheLossesAreThatEpochs) {
  const Progress progress = After(10, 11);
  EXPECT_EQ(progress.step, 10u);
  EXPECT_EQ(progress.epoch, 0u);
  EXPECT_EQ(progress.step_in_epoch, 10u);
  EXPECT_EQ(After(11, 11).epoch, 1u);
}

TEST_F(ProgressTest, TheTimeLeftFollowsFromThePace) {
  EXPECT_FALSE(After(10, 0).seconds_left.has_value());
  const Progress progress = After(10, 0, 4);
  EXPECT_EQ(progress.samples_per_second, 40);
  EXPECT_EQ(progress.seconds_left, 5);
}

}  // namespace
}  // namespace dt::scheduler
