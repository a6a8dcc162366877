#include "scheduler/schedule/loss_curve.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

using Curve = std::vector<JobResult::CurvePoint>;

// A curve with one point per step: 10 samples, a tenth of a second, and a loss equal to the step.
Curve CurveOf(uint64_t steps) {
  Curve curve;
  for (uint64_t step = 1; step <= steps; ++step) {
    const auto number = static_cast<double>(step);
    AddToCurve({step, 0.1 * number, 10, 1 / number, {{"click", number}}}, curve);
  }
  return curve;
}

TEST(LossCurve, StaysShortWhateverItCovers) {
  for (const uint64_t steps : {1u, 511u, 512u, 513u, 1024u, 1025u, 5000u, 100'000u}) {
    const Curve curve = CurveOf(steps);
    EXPECT_LE(curve.size(), kCurvePointsMax) << steps;
    EXPECT_GE(curve.size(), std::min<uint64_t>(steps, kCurvePointsMax / 2)) << steps;
    EXPECT_EQ(curve.back().step, steps);
    uint64_t samples = 0;
    double sum = 0;
    for (const JobResult::CurvePoint& point : curve) {
      samples += point.samples;
      sum += point.losses[0].mean * static_cast<double>(point.samples);
    }
    EXPECT_EQ(samples, 10 * steps);
    const auto n = static_cast<double>(steps);
    EXPECT_NEAR(sum, 10 * n * (n + 1) / 2, 1e-6 * sum) << "no loss is lost";
  }
}

TEST(LossCurve, PointsCoverEquallyMuchOnceNeighboursWereMerged) {
  const Curve curve = CurveOf(5000);
  const uint64_t each = curve.front().step;
  for (size_t i = 1; i + 1 < curve.size(); ++i) {
    EXPECT_EQ(curve[i].step - curve[i - 1].step, each) << i;
  }
}

TEST(LossCurve, MeansAreWeightedBySamples) {
  Curve curve;
  for (size_t i = 0; i <= kCurvePointsMax; ++i) {
    const uint64_t samples = i == 1 ? 30 : 10;
    const double loss = i == 1 ? 1 : 5;
    AddToCurve({i + 1, static_cast<double>(i), samples, 0.5, {{"click", loss}}}, curve);
  }
  EXPECT_EQ(curve[0].losses[0].mean, 2);
  EXPECT_EQ(curve[0].samples, 40u);
  EXPECT_EQ(curve[0].step, 2u);
  EXPECT_EQ(curve[0].seconds, 1);
}

}  // namespace
}  // namespace dt::scheduler
