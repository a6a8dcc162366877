// Goal: the model that a job returns to at its end has a checkpoint, whatever became of those that
// were abandoned. Method: a job of three epochs; the test says how good the model is after each,
// and which checkpoint is abandoned.
#include <gtest/gtest.h>

#include "scheduler/schedule/job_schedule.h"

namespace dt::scheduler {
namespace {

class BestCheckpointTest : public ::testing::Test {
 protected:
  static ScheduleConfig Config() {
    ScheduleConfig config;
    config.train_rows = 100;
    config.valid_rows = 20;
    config.batch_size = 10;
    config.epochs = 3;
    config.losses = {"click"};
    config.early_stop = EarlyStopConfig{"valid.auc", 10};
    return config;
  }

  // The next order that is not one to train; orders to train are done.
  schedule::Order Next() {
    for (;;) {
      const std::optional<schedule::Order> order = schedule_.Next();
      EXPECT_TRUE(order.has_value());
      if (!order.has_value()) return schedule::Finish{};
      const auto* const train = std::get_if<schedule::Train>(&*order);
      if (train == nullptr) return *order;
      const auto samples = 10 * (train->end_step - train->first_step);
      schedule_.OnTrained(train->end_step, {samples, {1}, {1}, 1});
    }
  }
  void Evaluate(Step step, double auc) {
    const schedule::Order order = Next();
    ASSERT_TRUE(std::holds_alternative<schedule::Evaluate>(order));
    EXPECT_EQ(std::get<schedule::Evaluate>(order).step, step);
    schedule_.OnEvaluated({{.auc = auc}});
  }
  // Its content is fixed, and it is being written.
  void BeginSave(Step step, bool best) {
    const schedule::Order order = Next();
    ASSERT_TRUE(std::holds_alternative<schedule::Save>(order));
    EXPECT_EQ(std::get<schedule::Save>(order).step, step);
    EXPECT_EQ(std::get<schedule::Save>(order).best, best);
    schedule_.OnCut();
  }
  void Save(Step step, bool best) {
    BeginSave(step, best);
    schedule_.OnWritten();
  }
  // Does the order after all training; the step of the model that is loaded, 0 if none is.
  Step RestoredAtTheEnd() {
    const schedule::Order order = Next();
    const auto* const restore = std::get_if<schedule::Restore>(&order);
    return restore == nullptr ? 0 : restore->step;
  }
  std::optional<Step> best() const { return schedule_.state().decisions.best_step; }

  ScheduleRecord record_ = ScheduleFrom(Config(), {});
  JobSchedule schedule_{Config(), record_};
};

TEST_F(BestCheckpointTest, IsTheOneBeforeIfItWasAbandonedAndTrainingHasGoneOn) {
  Evaluate(10, 0.7);
  Save(10, true);
  Evaluate(20, 0.9);
  BeginSave(20, true);
  Evaluate(30, 0.6);
  EXPECT_FALSE(schedule_.OnAbandoned());
  EXPECT_EQ(best(), 10u);
  Save(30, false);
  EXPECT_EQ(RestoredAtTheEnd(), 10u);
}

// No gain in the decisions' eyes, and yet the best of those that are kept.
TEST_F(BestCheckpointTest, IsALaterOneThatIsWorseIfTheBestWasAbandoned) {
  Evaluate(10, 0.7);
  Save(10, true);
  Evaluate(20, 0.9);
  BeginSave(20, true);
  Evaluate(30, 0.8);
  EXPECT_FALSE(schedule_.OnAbandoned());
  EXPECT_EQ(best(), 30u);
  EXPECT_EQ(schedule_.state().decisions.stop_best, 0.9);
  Save(30, true);
  EXPECT_EQ(RestoredAtTheEnd(), 0u) << "it is the last one";
}

TEST_F(BestCheckpointTest, IsTheLastModelIfNoneIsKept) {
  Evaluate(10, 0.9);
  BeginSave(10, true);
  const auto train = std::get<schedule::Train>(*schedule_.Next());
  EXPECT_FALSE(schedule_.OnAbandoned());
  EXPECT_FALSE(best().has_value());
  schedule_.OnTrained(train.end_step, {10, {1}, {1}, 1});
  Evaluate(20, 0.8);
  Save(20, true);
  Evaluate(30, 0.7);
  Save(30, false);
  EXPECT_EQ(RestoredAtTheEnd(), 20u);
}

TEST_F(BestCheckpointTest, IsMadeAgainIfNothingWasTrainedSince) {
  Evaluate(10, 0.9);
  BeginSave(10, true);
  EXPECT_TRUE(schedule_.OnAbandoned());
  Save(10, true);
}

TEST_F(BestCheckpointTest, StaysIfALaterCheckpointIsAbandoned) {
  Evaluate(10, 0.9);
  Save(10, true);
  const auto train = std::get<schedule::Train>(*schedule_.Next());
  schedule_.RequestSave();
  schedule_.OnTrained(train.end_step, {10, {1}, {1}, 1});
  BeginSave(train.end_step, false);
  Evaluate(20, 0.8);
  EXPECT_TRUE(schedule_.OnAbandoned());
  EXPECT_EQ(best(), 10u);
}

// A better one came while it was written.
TEST_F(BestCheckpointTest, IsABetterOneThatCameWhileTheFirstWasWritten) {
  Evaluate(10, 0.7);
  BeginSave(10, true);
  Evaluate(20, 0.9);
  EXPECT_TRUE(schedule_.OnAbandoned());
  Save(20, true);
  Evaluate(30, 0.8);
  BeginSave(30, false);
  EXPECT_TRUE(schedule_.OnAbandoned());
  Save(30, false);
  EXPECT_EQ(RestoredAtTheEnd(), 20u);
}

}  // namespace
}  // namespace dt::scheduler
