// Goal: so much training is ordered ahead that workers can go on without a scheduler, and yet a
// stop or a checkpoint that is asked for soon finds a boundary. Method: the schedule of a job of
// 10,000 steps without evaluations.
#include <deque>

#include <gtest/gtest.h>

#include "scheduler/schedule/job_schedule.h"

namespace dt::scheduler {
namespace {

class OrdersAheadTest : public ::testing::Test {
 protected:
  OrdersAheadTest() {
    config_.train_rows = 100'000;
    config_.batch_size = 10;
    config_.losses = {"click"};
    config_.seconds_ahead = 60;
    Make();
  }
  void Make() {
    record_ = ScheduleFrom(config_, {});
    schedule_.emplace(config_, record_);
  }
  // Returns how many orders are issued now.
  size_t Issue() {
    size_t issued = 0;
    for (; auto order = schedule_->Next(); ++issued) {
      out_.push_back(std::get<schedule::Train>(*order));
    }
    return issued;
  }
  // The oldest order is done, and took so long for each step.
  void Train(double step_seconds) {
    const schedule::Train order = out_.front();
    out_.pop_front();
    const auto steps = static_cast<double>(order.end_step - order.first_step);
    schedule_->OnTrained(order.end_step,
                         {static_cast<uint64_t>(steps) * 10, {steps}, {1}, steps * step_seconds});
  }
  double SecondsAhead(double step_seconds) const {
    return static_cast<double>(record_.issued - record_.state.step) * step_seconds;
  }

  ScheduleConfig config_;
  ScheduleRecord record_;
  std::optional<JobSchedule> schedule_;
  std::deque<schedule::Train> out_;
};

TEST_F(OrdersAheadTest, TwoOrdersAreOutWhileTheTimeOfAStepIsUnknown) {
  EXPECT_EQ(Issue(), 2u);
  EXPECT_EQ(record_.issued, 8u);
}

TEST_F(OrdersAheadTest, AreAsLongAsTheyWereAndCoverTheTimeOfAnOutage) {
  for (int i = 0; i < 10; ++i) {
    Issue();
    Train(0.02);
  }
  Issue();
  EXPECT_GE(SecondsAhead(0.02), 60);
  EXPECT_LE(SecondsAhead(0.02), 61) << "at most one order more";
  EXPECT_EQ(out_.back().end_step - out_.back().first_step, 20u) << "of 0.4 s";
}

TEST_F(OrdersAheadTest, SlowStepsAreOrderedOneByOne) {
  Issue();
  Train(7);
  Train(7);
  Issue();
  EXPECT_EQ(out_.size(), 9u);
  EXPECT_EQ(out_.back().end_step - out_.back().first_step, 1u);
  EXPECT_GE(SecondsAhead(7), 60);
}

TEST_F(OrdersAheadTest, ReachToTheNextBoundary) {
  config_.save_every = 100;
  Make();
  Issue();
  Train(0.02);
  Issue();
  EXPECT_EQ(record_.issued, 100u);
  while (out_.size() > 1) Train(0.02);
  EXPECT_EQ(Issue(), 0u) << "the checkpoint comes first";
}

TEST_F(OrdersAheadTest, ReachBeyondTheEpochIfNothingIsDueAtItsEnd) {
  config_.train_rows = 1000;
  config_.epochs = 100;
  for (const bool evaluates : {false, true}) {
    config_.valid_rows = evaluates ? 10 : 0;
    Make();
    out_.clear();
    Issue();
    Train(0.1);
    Issue();
    EXPECT_EQ(record_.issued > 100, !evaluates);
    for (const schedule::Train& order : out_) {
      EXPECT_EQ(order.first_step / 100, (order.end_step - 1) / 100) << "an order is of one epoch";
    }
  }
}

TEST_F(OrdersAheadTest, AreBoundedInNumber) {
  config_.seconds_ahead = 86400;
  Make();
  Issue();
  Train(0.05);
  Issue();
  EXPECT_EQ(out_.size(), 256u);
}

TEST_F(OrdersAheadTest, AStopRecallsAllButTwo) {
  Issue();
  Train(0.02);
  Issue();
  EXPECT_FALSE(schedule_->TakeRecall().has_value()) << "nobody asks for a boundary";
  schedule_->RequestStop();
  EXPECT_EQ(schedule_->TakeRecall(), 2u);
  EXPECT_FALSE(schedule_->TakeRecall().has_value()) << "once";
  const Step end = out_[2].end_step;  // Somebody has begun the third one.
  schedule_->OnRecalled(end, out_.size() - 3);
  out_.resize(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Issue(), 0u);
    EXPECT_FALSE(schedule_->interrupted());
    Train(0.02);
  }
  EXPECT_FALSE(schedule_->Next().has_value());
  EXPECT_TRUE(schedule_->interrupted());
  EXPECT_EQ(record_.state.step, end);
}

TEST_F(OrdersAheadTest, TrainingGoesOnBehindACheckpointThatWasAskedFor) {
  for (int time = 0; time < 2; ++time) {
    Issue();
    Train(0.02);
    Issue();
    schedule_->RequestSave();
    ASSERT_EQ(schedule_->TakeRecall(), 2u) << "for each checkpoint";
    const Step end = out_[1].end_step;
    schedule_->OnRecalled(end, out_.size() - 2);
    out_.resize(2);
    Train(0.02);
    Train(0.02);
    const auto save = schedule_->Next();
    ASSERT_TRUE(save.has_value());
    EXPECT_EQ(std::get<schedule::Save>(*save).step, end);
    schedule_->OnDone();
    Issue();
    EXPECT_EQ(out_.front().first_step, end);
    EXPECT_GE(SecondsAhead(0.02), 60);
  }
}

}  // namespace
}  // namespace dt::scheduler
