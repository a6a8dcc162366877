// Goal: a checkpoint is loaded, evaluated once, and the job finishes. Method: the test carries out
// the orders.
#include "scheduler/job/evaluation_run.h"

#include <gtest/gtest.h>

#include "test/unit/scheduler/job/job_parts.h"

namespace dt::scheduler {
namespace {

class EvaluationRunTest : public ::testing::Test {
 protected:
  EvaluationRunTest() {
    for (uint64_t id : {1, 2}) job_.Join(Role::kServer, id);
    for (uint64_t id : {3, 4}) job_.Join(Role::kWorker, id);
    Manifest manifest;
    manifest.schedule.step = 5;
    job_.options.checkpoint = {"/from", manifest};
  }
  // Returns the order that was handed out, after all of its processes have reported this result.
  Order Next(const OrderResult& result) {
    EXPECT_EQ(*run_.HandOut(), RunState::kGoing);
    EXPECT_EQ(job_.record.orders.out.size(), 1u);
    const OrdersOut::Out out = job_.record.orders.out.front();
    EXPECT_EQ(*run_.HandOut(), RunState::kGoing) << "nothing goes out beside it";
    for (const ProcessId id : out.missing) {
      EXPECT_TRUE(job_.orders.OnDone(id, {out.order.number, result}).ok());
    }
    EXPECT_TRUE(run_.OnCompleted({}, *job_.orders.TakeCompleted()).ok());
    had_it_ = out.missing.size();
    return out.order.what;
  }

  JobParts job_;
  EvaluationRun run_{job_.context};
  size_t had_it_ = 0;
};

TEST_F(EvaluationRunTest, LoadsEvaluatesAndFinishes) {
  const LoadOrder load = std::get<LoadOrder>(Next(LoadDone{}));
  EXPECT_EQ(load.folder, "/from");
  EXPECT_EQ(load.step, 5u);
  EXPECT_EQ(had_it_, 4u);
  EXPECT_EQ(job_.record.last_checkpoint, "/from");
  EXPECT_FALSE(run_.metrics().has_value());
  EXPECT_EQ(std::get<EvaluateOrder>(Next(EvaluateDone{})).step, 5u);
  EXPECT_EQ(had_it_, 2u) << "servers have no part in it";
  EXPECT_TRUE(run_.metrics().has_value());
  EXPECT_TRUE(std::holds_alternative<FinishOrder>(Next(FinishDone{})));
  EXPECT_EQ(*run_.HandOut(), RunState::kFinished);
}

TEST_F(EvaluationRunTest, LoadingBeginsTheNextGeneration) {
  job_.record.generation = Generation(3);
  EXPECT_EQ(std::get<LoadOrder>(Next(LoadDone{})).generation, Generation(4));
  EXPECT_EQ(job_.record.generation, Generation(4));
}

TEST_F(EvaluationRunTest, WithoutTestDataItTakesTheValidationData) {
  EXPECT_FALSE(run_.on_test_data());
  Next(LoadDone{});
  EXPECT_EQ(std::get<EvaluateOrder>(Next(EvaluateDone{})).split, SplitKind::kValid);
}

TEST_F(EvaluationRunTest, WithTestDataItTakesThat) {
  job_.record.data.test_rows = 1;
  Next(LoadDone{});
  EXPECT_EQ(std::get<EvaluateOrder>(Next(EvaluateDone{})).split, SplitKind::kTest);
}

TEST_F(EvaluationRunTest, ADiskThatForgetsTheGenerationEndsTheJob) {
  job_.environment.disk = Unavailable("disk full");
  EXPECT_EQ(run_.HandOut().status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(job_.orders.empty());
}

}  // namespace
}  // namespace dt::scheduler
