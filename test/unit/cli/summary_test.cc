// Goal: what is printed when a job has ended says each figure once, and leaves out what there is
// not. Method: results that differ in one thing.
#include "cli/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dt::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string PrintedSummary(const JobResult& result) {
  testing::internal::CaptureStdout();
  PrintSummary(result);
  return testing::internal::GetCapturedStdout();
}

JobResult Trained() {
  JobResult result;
  result.job = "j";
  result.epochs = 2;
  result.steps = 1;
  result.samples = 3000;
  result.seconds = 1.5;
  result.train = {{"click", 0.25}};
  result.valid = {{.auc = 0.75, .logloss = 0.5, .samples = 10, .loss = "click"}};
  result.checkpoint = "runs/j/checkpoints/step-1";
  return result;
}

TEST(Summary, AJobWithOneLossNeedsNoNames) {
  EXPECT_EQ(PrintedSummary(Trained()),
            "job j: 2 epochs, 1 step, 1.5 s, 2000 samples/s\n"
            "train logloss 0.25000\n"
            "valid AUC 0.75000, logloss 0.50000\n"
            "checkpoint runs/j/checkpoints/step-1\n");
}

TEST(Summary, SeveralLossesAreNamed) {
  JobResult result = Trained();
  result.train.push_back({"price", 1.0});
  result.valid->push_back({.logloss = 2.0, .samples = 10, .accuracy = 0.125, .loss = "price"});
  const std::string printed = PrintedSummary(result);
  EXPECT_THAT(printed, HasSubstr("train click logloss 0.25000\ntrain price logloss 1.00000\n"));
  EXPECT_THAT(printed, HasSubstr("valid click AUC 0.75000, logloss 0.50000\n"
                                 "valid price accuracy 0.12500, logloss 2.00000\n"));
}

TEST(Summary, ASplitOrALossWithoutSamplesIsLeftOut) {
  JobResult result = Trained();
  result.test = {{.logloss = 0.0, .samples = 0, .loss = "click"}};
  EXPECT_THAT(PrintedSummary(result), Not(HasSubstr("test")));
  result.test = {{.logloss = 0.5, .samples = 1, .loss = "click"}};
  EXPECT_THAT(PrintedSummary(result), HasSubstr("\ntest logloss 0.50000\n"));
}

TEST(Summary, AnEvaluationTellsOfNoTraining) {
  JobResult result;
  result.job = "j";
  result.checkpoint = "dir";
  result.test = {{.auc = 0.5, .logloss = 0.75, .samples = 5, .loss = "click"}};
  EXPECT_EQ(PrintedSummary(result), "test AUC 0.50000, logloss 0.75000\n");
}

TEST(Summary, AJobThatHadFinishedBeforeSaysSo) {
  JobResult result = Trained();
  result.had_finished = true;
  result.seconds = 0;
  EXPECT_THAT(PrintedSummary(result),
              HasSubstr("0.0 s, 0 samples/s; it had finished before, and nothing "
                        "was trained\n"));
}

TEST(Summary, ThePlansPredictionStandsBesideWhatWasMeasured) {
  JobResult result = Trained();
  result.plan = {.predicted = 0.00125, .measured = 0.5};
  EXPECT_THAT(PrintedSummary(result),
              HasSubstr("plan: 1.25 ms a step predicted, 500 ms measured\n"));
}

TEST(Summary, ALossThatDivergedIsSaidAgainAndOtherEventsAreNot) {
  JobResult result = Trained();
  result.events = {{1, "loss_diverged", {{"step", int64_t{7}}, {"why", std::string("it grew")}}},
                   {2, "worker_lost", {{"why", std::string("silence")}}}};
  const std::string printed = PrintedSummary(result);
  EXPECT_THAT(printed, HasSubstr("warning: it grew\n"));
  EXPECT_THAT(printed, Not(HasSubstr("silence")));
}

TEST(Summary, ThePageIsOneLineAndNothingWithoutOne) {
  testing::internal::CaptureStdout();
  PrintPage("");
  PrintPage("http://127.0.0.1:80/");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "page http://127.0.0.1:80/\n");
}

}  // namespace
}  // namespace dt::cli
