#include "scheduler/schedule/decisions.h"

#include <cmath>
#include <limits>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

struct Case {
  std::string name;
  std::optional<PlateauConfig> plateau;
  std::optional<EarlyStopConfig> early_stop;
  std::vector<double> metric;     // One value per evaluation; the other metric is constant.
  std::vector<float> rate_scale;  // One value after each evaluation.
  std::vector<bool> stopped;
  uint64_t best_epoch;
};

const PlateauConfig kPlateau{"valid.auc", 0.5f, 0, 0.0f};
const EarlyStopConfig kStop{"valid.auc", 2};

std::vector<Case> Cases() {
  return {
      {"gains change nothing", kPlateau, kStop, {0.5, 0.6, 0.7}, {1, 1, 1}, {0, 0, 0}, 3},
      {"rate falls after one without gain, stop after two in a row",
       kPlateau,
       kStop,
       {0.5, 0.6, 0.6, 0.55},
       {1, 1, 0.5f, 0.25f},
       {0, 0, 0, 1},
       2},
      {"a gain between starts counting again",
       kPlateau,
       kStop,
       {0.6, 0.5, 0.7, 0.6, 0.8, 0.7, 0.7},
       {1, 0.5f, 0.5f, 0.25f, 0.25f, 0.125f, 0.0625f},
       {0, 0, 0, 0, 0, 0, 1},
       5},
      {"gain is measured against the best, not the last",
       std::nullopt,
       kStop,
       {0.9, 0.5, 0.6},
       {1, 1, 1},
       {0, 0, 1},
       1},
      {"equal is no gain",
       std::nullopt,
       EarlyStopConfig{"valid.auc", 1},
       {0.5, 0.5},
       {1, 1},
       {0, 1},
       1},
      {"lower logloss is better",
       PlateauConfig{"valid.logloss", 0.5f, 0, 0.0f},
       std::nullopt,
       {0.7, 0.6, 0.65},
       {1, 1, 0.5f},
       {0, 0, 0},
       2},
      {"patience of a plateau",
       PlateauConfig{"valid.auc", 0.1f, 1, 0.0f},
       std::nullopt,
       {0.5, 0.5, 0.5, 0.5, 0.5},
       {1, 1, 0.1f, 0.1f, 0.1f * 0.1f},
       {0, 0, 0, 0, 0},
       1},
      {"the scale has a floor",
       PlateauConfig{"valid.auc", 0.1f, 0, 0.05f},
       std::nullopt,
       {0.5, 0.5, 0.5},
       {1, 0.1f, 0.05f},
       {0, 0, 0},
       1},
      {"no number is no gain",
       kPlateau,
       kStop,
       {kNan, 0.5, kNan, kNan},
       {0.5f, 0.5f, 0.25f, 0.125f},
       {0, 0, 0, 1},
       2},
      {"nothing configured decides nothing",
       std::nullopt,
       std::nullopt,
       {0.5, 0.4, 0.3},
       {1, 1, 1},
       {0, 0, 0},
       0},
  };
}

TEST(Decisions, FollowTheTable) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const Decisions decisions(c.plateau, c.early_stop);
    const bool logloss = c.plateau.has_value() && c.plateau->metric == "valid.logloss";
    DecisionState state;
    for (size_t i = 0; i < c.metric.size(); ++i) {
      Metrics metrics;
      (logloss ? metrics.logloss : metrics.auc) = c.metric[i];
      decisions.OnEvaluation({metrics}, 10 * (i + 1), i + 1, state);
      EXPECT_FLOAT_EQ(state.rate_scale, c.rate_scale[i]) << "evaluation " << i;
      EXPECT_EQ(state.stopped, c.stopped[i]) << "evaluation " << i;
    }
    EXPECT_EQ(state.best_epoch, c.best_epoch);
    EXPECT_EQ(state.best_step.value_or(0), 10 * c.best_epoch);
  }
}

LossMetrics Of(double auc, double logloss) { return {{.auc = auc, .logloss = logloss}}; }

TEST(Decisions, EveryMetricMayDecideInItsDirection) {
  for (const MetricInfo& metric : AllMetrics()) {
    if (!metric.decides()) continue;
    SCOPED_TRACE(metric.name);
    const Decisions decisions(std::nullopt,
                              EarlyStopConfig{fmt::format("valid.{}", metric.name), 1});
    DecisionState state;
    const auto evaluate = [&](double value, uint64_t epoch) {
      Metrics metrics;
      metrics.*metric.value = value;
      decisions.OnEvaluation({metrics}, 10 * epoch, epoch, state);
    };
    const bool higher = metric.better == Better::kHigher;
    evaluate(0.5, 1);
    evaluate(higher ? 0.6 : 0.4, 2);
    EXPECT_EQ(state.best_step, 20u);
    EXPECT_FALSE(state.stopped);
    evaluate(0.5, 3);
    EXPECT_EQ(state.best_step, 20u);
    EXPECT_TRUE(state.stopped);
  }
}

TEST(Decisions, OfSeveralLossesTheNamedOneDecides) {
  const Decisions decisions(std::nullopt, EarlyStopConfig{"valid.next.accuracy", 1});
  DecisionState state;
  const auto of = [](double auc, double accuracy) {
    return LossMetrics{{.auc = auc, .loss = "click"}, {.accuracy = accuracy, .loss = "next"}};
  };
  decisions.OnEvaluation(of(0.9, 0.2), 10, 1, state);
  decisions.OnEvaluation(of(0.8, 0.3), 20, 2, state);
  EXPECT_EQ(state.best_step, 20u);
  EXPECT_FALSE(state.stopped);
  decisions.OnEvaluation(of(0.95, 0.1), 30, 3, state);
  EXPECT_TRUE(state.stopped);
}

TEST(Decisions, BestFollowsEarlyStopsMetric) {
  const Decisions decisions(PlateauConfig{"valid.logloss", 0.5f, 0, 0.0f}, kStop);
  DecisionState state;
  decisions.OnEvaluation(Of(0.7, 0.5), 10, 1, state);
  decisions.OnEvaluation(Of(0.8, 0.6), 20, 2, state);
  decisions.OnEvaluation(Of(0.75, 0.4), 30, 3, state);
  EXPECT_EQ(state.best_step, 20u);
  EXPECT_FLOAT_EQ(state.rate_scale, 0.5f);
}

}  // namespace
}  // namespace dt::scheduler
