// Goal: an asynchronous worker pushes once for each step, also without samples, is bounded in what
// it sends ahead, and computes on two lanes what it computes on one. Method: a made-up server whose
// rows never change, so that every push is a function of its step alone.
#include "worker/train/async_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/worker/train/scripted_rank.h"

namespace dt::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ProcessId kWorker(7);
constexpr Step kFirst = 1;  // Of the order.

RankSetting SettingOf(Step steps, Step without_samples = ~Step{0}) {
  RankSetting setting{.slices = 1, .staleness = 4, .workers = 2};
  for (Step step = kFirst; step < kFirst + steps; ++step) {
    const uint32_t samples = step == without_samples ? 0 : 4;
    setting.read.push_back({step, 0, samples, samples});
  }
  return setting;
}

// A worker with one lane or two.
class Worker {
 public:
  Worker(const RankSetting& setting, size_t lanes)
      : server(WireTablesOf(ScriptedJob(setting)), journal),
        rank(setting, std::move(PlainMeshes(1).front()), server, journal),
        dense_(rank.job, *rank.engine) {
    lanes_.push_back({*rank.engine, dense_});
    if (lanes == 2) {
      other_engine_ = Engine::Create(ScriptedPlan(setting), {.pool = rank.pool}).value();
      other_dense_.emplace(rank.job, *other_engine_);
      lanes_.push_back({*other_engine_, *other_dense_});
    }
    stages.lanes = lanes_;
  }

  static AsyncStepInfo InfoOf(Step step) {
    return {.worker = kWorker, .order = kFirst, .number = step - kFirst, .slices = 2};
  }
  Status Begin(Step step) {
    DT_TRY_STATUS(rank.puller->Begin(step, PullMode::kTrain));
    return BeginAsyncStep(InfoOf(step), stages);
  }
  Result<AsyncStepResult> End(Step step) { return EndAsyncStep(InfoOf(step), stages); }
  // As many steps as lanes are under way at a time.
  Status Train(Step steps) {
    Step begun = kFirst;
    for (Step step = kFirst; step < kFirst + steps; ++step) {
      while (begun < std::min(kFirst + steps, step + lanes_.size())) {
        DT_TRY_STATUS(Begin(begun++));
      }
      DT_TRY(const AsyncStepResult result, End(step));
      losses.emplace_back(result.losses.begin(), result.losses.end());
    }
    return rank.client->WaitForPushes();
  }
  // Steps whose push was acknowledged, in order.
  std::vector<Step> Acknowledged() const {
    std::vector<Step> steps;
    for (const Happening& h : journal.all()) {
      if (h.what == "acknowledged") steps.push_back(h.step);
    }
    return steps;
  }

  Journal journal;
  ScriptedServer server;
  ScriptedRank rank;
  std::vector<std::vector<double>> losses;

 private:
  DenseBlocks dense_;
  std::unique_ptr<Engine> other_engine_;
  std::optional<DenseBlocks> other_dense_;
  std::vector<AsyncLane> lanes_;

 public:
  AsyncStages stages{*rank.puller, *rank.client, {}, [](Step) { return 0.5f; }};
};

TEST(AsyncStep, EachStepIsPushedOnceAsTheWorkersOwn) {
  Worker worker(SettingOf(3), 1);
  ASSERT_TRUE(worker.Train(3).ok());
  const auto pushes = worker.server.pushes();
  std::vector<Step> steps;
  for (const auto& [id, content] : pushes) {
    const auto& [step, slice, of] = id;
    steps.push_back(step);
    EXPECT_EQ(slice, 0u);
    EXPECT_EQ(of, kWorker.value());
    EXPECT_TRUE(content.starts_with("0.5 2 1;")) << "rate, slices, first step of the order";
  }
  EXPECT_THAT(steps, ElementsAre(1, 2, 3));
}

TEST(AsyncStep, TwoLanesPushTheSameBitsAsOne) {
  Worker one(SettingOf(6), 1), two(SettingOf(6), 2);
  ASSERT_TRUE(one.Train(6).ok());
  ASSERT_TRUE(two.Train(6).ok());
  EXPECT_EQ(one.server.pushes().size(), 6u);
  EXPECT_EQ(one.server.pushes(), two.server.pushes());
  EXPECT_EQ(one.losses, two.losses);
}

// Rows do not change here: what a step leaves behind must not reach the next one.
TEST(AsyncStep, AStepDependsOnItsRowsAndSamplesAlone) {
  Worker all(SettingOf(4), 1);
  ASSERT_TRUE(all.Train(4).ok());
  RankSetting last = SettingOf(4);
  last.read.erase(last.read.begin(), last.read.begin() + 3);
  Worker alone(last, 1);
  ASSERT_TRUE(alone.Begin(4).ok());
  ASSERT_TRUE(alone.End(4).ok());
  EXPECT_EQ(alone.server.pushes().begin()->second, all.server.pushes().at({4, 0, kWorker.value()}));
}

TEST(AsyncStep, AStepWithoutSamplesIsPushedEmptySoThatOthersCountIt) {
  Worker worker(SettingOf(3, 2), 1);
  ASSERT_TRUE(worker.Train(3).ok());
  const auto pushes = worker.server.pushes();
  ASSERT_EQ(pushes.size(), 3u);
  EXPECT_TRUE(worker.losses[1].empty());
  EXPECT_EQ(worker.losses[0].size(), 1u);
  const auto bytes = [&](Step step) { return pushes.at({step, 0, kWorker.value()}).size(); };
  EXPECT_LT(bytes(2), bytes(1));
}

TEST(AsyncStep, WithoutOverlapAPushIsAcknowledgedWhenItsStepEnds) {
  Worker worker(SettingOf(3), 1);
  worker.stages.overlap = false;
  for (Step step = kFirst; step < kFirst + 3; ++step) {
    ASSERT_TRUE(worker.Begin(step).ok());
    ASSERT_TRUE(worker.End(step).ok());
    EXPECT_EQ(worker.Acknowledged().size(), step) << "steps begin with 1";
  }
}

// A server that takes pushes and does not say so: memory for what is under way is bounded.
TEST(AsyncStep, WithOverlapAtMostEightStepsAreAheadOfAnAcknowledgement) {
  Worker worker(SettingOf(12), 1);
  worker.server.HoldBack(kFirst);
  std::optional<Step> waited_in;
  for (Step step = kFirst; step < kFirst + 12 && !waited_in; ++step) {
    ASSERT_TRUE(worker.Begin(step).ok());
    const auto end = worker.End(step);
    if (end.ok()) continue;
    EXPECT_THAT(ToText(end.status()), HasSubstr("did not answer a push of step 1"));
    waited_in = step;
  }
  EXPECT_EQ(waited_in, kFirst + 9);
}

TEST(AsyncStep, AStepWhoseGradientIsNotFinitePushesNothing) {
  Worker whole(SettingOf(2), 1);
  ASSERT_TRUE(whole.Train(2).ok());
  const std::vector<std::string> points = whole.rank.script.reached()[0];
  const auto first = std::ranges::find(points, "rows");
  const auto second = std::find(first + 1, points.end(), "rows");
  ASSERT_NE(second, points.end());
  Worker worker(SettingOf(2), 1);
  worker.rank.script.FailAt({.number = static_cast<size_t>(second - points.begin())},
                            Script::Fault::kOnce);
  EXPECT_THAT(ToText(worker.Train(2)), HasSubstr("is not finite at step 2"));
  EXPECT_EQ(worker.server.pushes().size(), 1u) << "that of the step before";
}

TEST(AsyncStep, RowsThatDoNotComeAreTheStepsErrorAndNothingIsPushed) {
  Worker worker(SettingOf(1), 1);
  worker.rank.script.FailAt({.number = 0}, Script::Fault::kForGood);
  EXPECT_FALSE(worker.Begin(kFirst).ok());
  EXPECT_TRUE(worker.server.pushes().empty());
}

}  // namespace
}  // namespace dt::worker
