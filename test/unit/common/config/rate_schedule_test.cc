// Goal: learning rate schedules equal those of PyTorch. Method: the recurrences of its schedulers,
// which compute each rate from the last one, in float64, are compared with our closed forms.
#include "common/config/rate_schedule.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "test/unit/common/config/temp_job.h"

namespace dt {
namespace {

constexpr Step kSteps = 400;
constexpr double kError = 1e-12;

// The next rate of torch.optim.lr_scheduler.LinearLR(start_factor=1/warmup, total_iters=warmup-1).
double NextLinear(double rate, Step epoch, double start, double total) {
  if (static_cast<double>(epoch) > total) return rate;
  return rate * (1 + (1 - start) / (total * start + static_cast<double>(epoch - 1) * (1 - start)));
}

// The next rate of CosineAnnealingLR(T_max=total, eta_min=least).
double NextCosine(double rate, Step epoch, double total, double least) {
  const auto at = static_cast<double>(epoch);
  return (1 + std::cos(std::numbers::pi * at / total)) /
             (1 + std::cos(std::numbers::pi * (at - 1) / total)) * (rate - least) +
         least;
}

// The next rate of StepLR(step_size=every, gamma=factor).
double NextStep(double rate, Step epoch, Step every, double factor) {
  return epoch % every == 0 ? rate * factor : rate;
}

TEST(RateSchedule, WithoutOneTheRateStays) {
  for (Step step = 0; step < kSteps; ++step) EXPECT_EQ(RateSchedule().ScaleAt(step, kSteps), 1);
}

TEST(RateSchedule, AWarmUpIsALinearLr) {
  for (const Step warmup : {Step{2}, Step{10}, Step{333}}) {
    const RateSchedule schedule{.warmup = warmup};
    const auto total = static_cast<double>(warmup - 1);
    double rate = 1.0 / static_cast<double>(warmup);
    for (Step step = 0; step < kSteps; ++step) {
      if (step > 0) rate = NextLinear(rate, step, 1.0 / static_cast<double>(warmup), total);
      EXPECT_NEAR(schedule.ScaleAt(step, kSteps), rate, kError) << warmup << " at " << step;
    }
  }
  EXPECT_EQ(RateSchedule{.warmup = 1}.ScaleAt(0, kSteps), 1);
}

// As in SequentialLR, the second schedule counts steps from the end of the first.
TEST(RateSchedule, ACosineIsACosineAnnealingLrBehindAWarmUp) {
  for (const Step warmup : {Step{0}, Step{20}}) {
    for (const float least : {0.0f, 0.25f}) {
      RateSchedule schedule{.warmup = warmup, .curve = RateCurve::kCosine, .min_scale = least};
      double rate = 1;
      for (Step step = warmup; step < kSteps; ++step) {
        const auto total = static_cast<double>(kSteps - warmup);
        if (step > warmup) rate = NextCosine(rate, step - warmup, total, least);
        EXPECT_NEAR(schedule.ScaleAt(step, kSteps), rate, 1e-9) << warmup << " at " << step;
      }
      EXPECT_EQ(schedule.ScaleAt(kSteps, kSteps), least) << "and it never rises again";
      EXPECT_EQ(schedule.ScaleAt(3 * kSteps / 2, kSteps), least);
      schedule.steps = kSteps;
      EXPECT_EQ(schedule.ScaleAt(kSteps / 3, 7 * kSteps), schedule.ScaleAt(kSteps / 3, kSteps));
    }
  }
}

TEST(RateSchedule, StepsAreAStepLrBehindAWarmUp) {
  const RateSchedule schedule{
      .warmup = 5, .curve = RateCurve::kStep, .every = 30, .factor = 0.5f, .min_scale = 0.01f};
  double rate = 1;
  for (Step step = 5; step < kSteps; ++step) {
    if (step > 5) rate = NextStep(rate, step - 5, 30, 0.5);
    EXPECT_NEAR(schedule.ScaleAt(step, kSteps), std::max(rate, double{0.01f}), kError) << step;
  }
  EXPECT_EQ(schedule.ScaleAt(0, kSteps), 0.2);
}

RateSchedule ScheduleOf(const std::string& text) {
  const TempDir dir;
  const Result<JobConfig> job =
      LoadJob(dir.Write("job.yaml", Replaced(kGoodJob, "{type: plateau, factor: 0.1}", text)), {});
  EXPECT_TRUE(job.ok()) << ToText(job.status());
  return job.ok() ? job->optimizer.schedule : RateSchedule();
}

TEST(RateSchedule, IsWrittenInTheJobFile) {
  EXPECT_EQ(ScheduleOf("{type: warmup, steps: 1000}"), (RateSchedule{.warmup = 1000}));
  EXPECT_EQ(ScheduleOf("{type: cosine}"), (RateSchedule{.curve = RateCurve::kCosine}));
  EXPECT_EQ(
      ScheduleOf("{type: cosine, steps: 90, warmup: 9, min_scale: 0.1}"),
      (RateSchedule{.warmup = 9, .curve = RateCurve::kCosine, .steps = 90, .min_scale = 0.1f}));
  EXPECT_EQ(ScheduleOf("{type: step, every: 50, factor: 0.3, warmup: 2}"),
            (RateSchedule{.warmup = 2, .curve = RateCurve::kStep, .every = 50, .factor = 0.3f}));
  EXPECT_EQ(ScheduleOf("{type: plateau, warmup: 7, factor: 0.3}"), (RateSchedule{.warmup = 7}));
}

TEST(RateSchedule, KeysOfAnotherTypeAreNoted) {
  const auto problems = [](const std::string& text) {
    return ProblemsAfter("{type: plateau, factor: 0.1}", text);
  };
  EXPECT_EQ(problems("{type: warmup}"),
            "job.yaml:19: optimizer.schedule.steps: missing, expected the steps of the warm-up\n"
            "1 problem, nothing started");
  EXPECT_EQ(problems("{type: step, patience: 3}"),
            "job.yaml:19: optimizer.schedule.patience: is for type plateau, the type is step\n"
            "job.yaml:19: optimizer.schedule.every: missing, expected the steps after which the "
            "rate falls\n2 problems, nothing started");
  EXPECT_EQ(problems("{type: cosine, steps: 10, warmup: 10, every: 1}"),
            "job.yaml:19: optimizer.schedule.every: is for type step, the type is cosine\n"
            "job.yaml:19: optimizer.schedule.steps: found 10, expected more than the 10 of the "
            "warm-up\n2 problems, nothing started");
}

}  // namespace
}  // namespace dt
