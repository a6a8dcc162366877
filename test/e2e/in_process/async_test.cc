// Goal: asynchronous workers (train.staleness > 0) train every sample once, learn, and write
// checkpoints from which a job can be resumed and evaluated. Method: whole jobs in this process.
#include <gtest/gtest.h>

#include "test/e2e/in_process/in_process_job.h"
#include "test/support/tiny_job.h"

namespace dt {
namespace {

using test::CheckpointsOf;
using test::ExpectCompleted;
using test::JobRun;
using test::JobShape;
using test::RunJob;

TEST(AsyncTest, WorkersApartTrainEverySampleOnceAndLearn) {
  for (const JobShape& shape :
       {JobShape{2, 2, 1, "2"}, JobShape{1, 3, 1, "unbounded"}, JobShape{1, 1, 1, "1"}}) {
    SCOPED_TRACE(fmt::format("{} workers, staleness {}", shape.workers, shape.staleness));
    const test::TempFolder folder;
    const TimePoint begun = SystemClock().Now();
    const JobRun run = RunJob(folder, "apart", shape);
    ExpectCompleted(run);
    // Time in which several workers trained at once counts only once.
    EXPECT_GT(run.result.seconds, 0);
    EXPECT_LT(run.result.seconds, SecondsBetween(begun, SystemClock().Now()));
    ASSERT_TRUE(run.result.valid.has_value());
    EXPECT_EQ(run.result.steps, 3 * 12);
    EXPECT_EQ(run.result.samples, 3 * 3000);
    ASSERT_GE(run.result.history.size(), 2);
    EXPECT_LT(run.result.history.back().train.at(0).mean,
              run.result.history.front().train.at(0).mean);
    EXPECT_GT(run.result.valid->at(0).auc.value_or(0), 0.6);
    EXPECT_EQ(run.result.tables.count("(dense)"), 1u);
    EXPECT_EQ(run.result.dense_checksum.size(), 32u);
  }
}

TEST(AsyncTest, ACheckpointHoldsTheDenseParametersToo) {
  const test::TempFolder folder;
  const JobShape shape{2, 2, 1, "4"};
  const JobRun trained = RunJob(folder, "saved", shape);
  ExpectCompleted(trained);
  JobShape other = shape;
  other.servers = 1;
  other.workers = 1;
  const std::string last = folder.path() + "/" + CheckpointsOf(folder, "saved").back();
  const JobRun evaluated =
      RunJob(folder, "saved", other, {.goal = scheduler::Goal::kEvaluate, .checkpoint = last});
  ExpectCompleted(evaluated);
  ASSERT_TRUE(evaluated.result.valid.has_value());
  EXPECT_EQ(evaluated.result.valid->at(0).auc, trained.result.history.back().valid.at(0).auc);
  EXPECT_EQ(evaluated.result.dense_checksum, trained.result.dense_checksum);
}

TEST(AsyncTest, AJobGoesOnFromItsCheckpoint) {
  const test::TempFolder folder;
  JobShape shape{1, 2, 1, "3"};
  shape.epochs = 2;
  const JobRun first = RunJob(folder, "goes_on", shape);
  ExpectCompleted(first);
  shape.epochs = 4;
  shape.staleness = "unbounded";
  const JobRun second = RunJob(folder, "goes_on", shape, {.resume = "auto"});
  ExpectCompleted(second);
  EXPECT_EQ(second.result.steps, 4 * 12);
  EXPECT_EQ(second.result.samples, 4 * 3000);
  EXPECT_LT(second.result.history.back().train.at(0).mean,
            first.result.history.front().train.at(0).mean);
}

}  // namespace
}  // namespace dt
