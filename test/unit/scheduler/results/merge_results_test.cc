#include "scheduler/results/merge_results.h"

#include <limits>
#include <map>

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

using Outcomes = std::map<ProcessId, EvaluateDone>;

LossConfig Loss(const char* type, const char* name) {
  LossConfig loss;
  loss.type = type, loss.name = name;
  return loss;
}

EvaluateDone Done(std::vector<EvaluatePart> parts, std::vector<float> scores,
                  std::vector<uint8_t> labels) {
  return {{{std::move(parts), std::move(scores), std::move(labels), {}}}};
}

Result<Metrics> Merged(const Outcomes& outcomes) {
  const std::vector<LossConfig> losses = {Loss("binary_cross_entropy", "click")};
  DT_TRY(const LossMetrics all, MergeEvaluation(outcomes, losses));
  return all.at(0);
}

TEST(MergeEvaluation, IsTheSameForAnySharing) {
  const EvaluatePart a{0, 2, 0.1, 1, 0.7}, b{1, 2, 0.2, 1, 1.1}, c{2, 1, 0.3, 0, 0.2};
  const auto one = Merged({{ProcessId(1), Done({a, b, c}, {-2, -1, 0, 1, 2}, {0, 1, 0, 0, 1})}});
  const auto two = Merged({{ProcessId(1), Done({a, c}, {-2, 0, 2}, {0, 0, 1})},
                           {ProcessId(2), Done({b}, {-1, 1}, {1, 0})}});
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(*one, *two);
  EXPECT_EQ(one->samples, 5u);
  EXPECT_DOUBLE_EQ(*one->logloss, (0.1 + 0.2 + 0.3) / 5);
  EXPECT_DOUBLE_EQ(*one->calibration, (0.7 + 1.1 + 0.2) / 2);
  EXPECT_DOUBLE_EQ(*one->auc, 4.0 / 6);
}

TEST(MergeEvaluation, MissingOrDoubleBatchesAreRefused) {
  const EvaluatePart a{0, 1, 0, 0, 0}, c{2, 1, 0, 0, 0};
  EXPECT_FALSE(Merged({{ProcessId(1), Done({a, c}, {0, 0}, {0, 1})}}).ok());
  EXPECT_FALSE(Merged({{ProcessId(1), Done({a, a}, {0, 0}, {0, 1})}}).ok());
  EXPECT_FALSE(Merged({{ProcessId(1), Done({a}, {0, 0}, {0, 1})}}).ok());
}

TEST(MergeEvaluation, BatchesOfPartsHaveGapsButAreThereOnce) {
  const std::vector<LossConfig> losses = {Loss("binary_cross_entropy", "click")};
  const EvaluatePart a{7, 1, 0, 0, 0}, c{900, 1, 0, 0, 0};
  EXPECT_TRUE(MergeEvaluation({{ProcessId(1), Done({c, a}, {0, 0}, {0, 1})}}, losses, true).ok());
  EXPECT_FALSE(MergeEvaluation({{ProcessId(1), Done({a, a}, {0, 0}, {0, 1})}}, losses, true).ok());
}

TEST(MergeEvaluation, WithoutSamplesOrClassesThereIsNoNumber) {
  const auto nothing = Merged({{ProcessId(1), Done({}, {}, {})}});
  EXPECT_EQ(nothing->samples, 0u);
  EXPECT_EQ(nothing->logloss, std::nullopt);
  const auto regression = Merged({{ProcessId(1), Done({{0, 3, 1.5, 0, 1}}, {}, {})}});
  EXPECT_EQ(regression->auc, std::nullopt);
  EXPECT_EQ(regression->calibration, std::nullopt);
  EXPECT_EQ(regression->logloss, 0.5);
}

TEST(MergeEvaluation, EachLossHasItsOwn) {
  const std::vector<LossConfig> losses = {Loss("binary_cross_entropy", "click"),
                                          Loss("softmax_cross_entropy", "next")};
  EvaluateDone one = Done({{0, 2, 0.5, 1, 1}}, {0, 1}, {0, 1}), two = Done({}, {}, {});
  one.losses.push_back({.parts = {{0, 2, 1.5, 0, 0, 1}}});
  two.losses.push_back({.parts = {{1, 2, 0.5, 0, 0, 2}}});
  two.losses[0].parts = {{1, 0, 0, 0, 0}};
  const auto all = MergeEvaluation({{ProcessId(1), one}, {ProcessId(2), two}}, losses);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->at(0).loss, "click");
  EXPECT_EQ(all->at(0).auc, 1.0);
  EXPECT_EQ(all->at(0).accuracy, std::nullopt);
  EXPECT_EQ(all->at(1).loss, "next");
  EXPECT_EQ(all->at(1).auc, std::nullopt);
  EXPECT_DOUBLE_EQ(*all->at(1).logloss, 0.5);
  EXPECT_DOUBLE_EQ(*all->at(1).accuracy, 0.75);
  two.losses.pop_back();
  EXPECT_FALSE(MergeEvaluation({{ProcessId(1), one}, {ProcessId(2), two}}, losses).ok());
}

TEST(MergeEvaluation, GroupsAreMergedAndMustBeThere) {
  std::vector<LossConfig> losses = {Loss("binary_cross_entropy", "click")};
  losses[0].group = "user", losses[0].top_k = 1;
  // User 7 has one sample at each worker.
  EvaluateDone one = Done({{0, 2, 0.1, 1, 0.7}}, {-1, 2}, {0, 1});
  EvaluateDone two = Done({{1, 2, 0.2, 1, 1.1}}, {0, 1}, {1, 0});
  one.losses[0].groups = {7, 8}, two.losses[0].groups = {7, 9};
  const auto merged = MergeEvaluation({{ProcessId(1), one}, {ProcessId(2), two}}, losses);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->at(0).gauc, 1.0) << "only user 7 has both classes";
  EXPECT_EQ(merged->at(0).hit_rate, 1.0);
  EXPECT_EQ(merged->at(0).auc, 0.75);
  losses[0].group = "";
  EXPECT_EQ(MergeEvaluation({{ProcessId(1), one}, {ProcessId(2), two}}, losses)->at(0).gauc,
            std::nullopt);
  losses[0].group = "user";
  two.losses[0].groups.clear();
  EXPECT_FALSE(MergeEvaluation({{ProcessId(1), one}, {ProcessId(2), two}}, losses).ok());
}

TEST(MergeEvaluation, ALossHasTheMetricsOfItsType) {
  const auto of = [](const char* type) {
    const std::vector<LossConfig> losses = {Loss(type, "l")};
    return MergeEvaluation({{ProcessId(1), Done({{0, 4, 1, 2, 2, 3}}, {}, {})}}, losses)->at(0);
  };
  EXPECT_EQ(of("mse").rmse, 0.5);
  EXPECT_EQ(of("mse").accuracy, std::nullopt);
  EXPECT_EQ(of("softmax_cross_entropy").accuracy, 0.75);
  EXPECT_EQ(of("softmax_cross_entropy").rmse, std::nullopt);
}

TEST(MergeTraining, SynchronousWorkersReportTheSameAndTheSlowestCounts) {
  const Trained all = MergeTraining(
      {{ProcessId(2), {4, 40, {5}, {0.5}, 0.1}}, {ProcessId(3), {4, 40, {5}, {0.5}, 0.3}}},
      {1, false});
  EXPECT_EQ(all.samples, 40u);
  EXPECT_EQ(all.loss_sums, std::vector<double>{5});
  EXPECT_EQ(all.first_losses, std::vector<double>{0.5});
  EXPECT_EQ(all.seconds, 0.3);
}

TEST(MergeTraining, AsynchronousWorkersReportTheirShares) {
  const Trained all = MergeTraining(
      {{ProcessId(2), {4, 10, {5, 1}, {}, 0.1}}, {ProcessId(3), {4, 30, {2, 4}, {0.7, 0.9}, 0.1}}},
      {2, true});
  EXPECT_EQ(all.samples, 40u);
  EXPECT_EQ(all.loss_sums, (std::vector<double>{7, 5}));
  EXPECT_EQ(all.first_losses, (std::vector<double>{0.7, 0.9})) << "of the first that has some";
}

TEST(Fits, AReportIsOfItsOrderAndFinite) {
  const TrainOrder order{.end_step = 4};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(Fits({4, 40, {5}, {0.5}, 0.1}, order, 1));
  EXPECT_TRUE(Fits({4, 40, {5}, {}, 0.1}, order, 1)) << "it had no samples in the first step";
  EXPECT_FALSE(Fits({5, 40, {5}, {}, 0.1}, order, 1)) << "another end";
  EXPECT_FALSE(Fits({4, 40, {5, 5}, {}, 0.1}, order, 1)) << "another number of losses";
  EXPECT_FALSE(Fits({4, 40, {5}, {1, 1}, 0.1}, order, 1));
  EXPECT_FALSE(Fits({4, 40, {nan}, {}, 0.1}, order, 1));
  EXPECT_FALSE(Fits({4, 40, {5}, {nan}, 0.1}, order, 1));
}

}  // namespace
}  // namespace dt::scheduler
