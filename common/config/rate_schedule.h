// How the learning rate changes with the step. Every process computes the same factor from the job
// file, so results depend neither on how training is cut into orders nor on where a job was
// resumed. The factor that evaluations decide (PlateauConfig) is separate.
//
//   warm-up        the factor grows evenly, from 1 / warmup in the first step to 1
//   then constant  1
//        cosine    falls from 1 along half a cosine to min_scale, which step number `steps` reaches
//        step      starts at 1 and is multiplied by `factor` after every `every` steps, but never
//                  falls below min_scale
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "common/base/ids.h"

namespace dt {

enum class RateCurve : uint8_t { kFlat, kCosine, kStep };

struct RateSchedule {
  Step warmup = 0;
  RateCurve curve = RateCurve::kFlat;  // Applies after the warm-up.
  // kCosine: the step at which the rate is lowest, warm-up included; 0: all steps of the job.
  Step steps = 0;
  Step every = 0;  // kStep: steps between two changes.
  float factor = 0.1f;
  float min_scale = 0.0f;

  bool needs_job_steps() const { return curve == RateCurve::kCosine && steps == 0; }
  // The factor in step `step` (counted from 0) of a job of `job_steps` steps.
  double ScaleAt(Step step, Step job_steps) const;
  friend bool operator==(const RateSchedule&, const RateSchedule&) = default;
};

inline double RateSchedule::ScaleAt(Step step, Step job_steps) const {
  if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  const auto at = static_cast<double>(step - warmup);
  const double least = min_scale;
  switch (curve) {
    case RateCurve::kFlat:
      return 1;
    case RateCurve::kCosine: {
      const Step end = steps > 0 ? steps : job_steps;
      if (step >= end) return least;
      const double share = at / static_cast<double>(end - warmup);
      return least + (1 - least) * (1 + std::cos(std::numbers::pi * share)) / 2;
    }
    case RateCurve::kStep:
      return std::max(least, std::pow(double{factor}, std::floor(at / static_cast<double>(every))));
  }
  return 1;
}

}  // namespace dt
