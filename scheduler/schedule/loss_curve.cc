#include "scheduler/schedule/loss_curve.h"

#include <utility>

namespace dt::scheduler {
namespace {

void Merge(const JobResult::CurvePoint& next, JobResult::CurvePoint& to) {
  const auto before = static_cast<double>(to.samples), added = static_cast<double>(next.samples);
  for (size_t l = 0; l < to.losses.size(); ++l) {
    double& mean = to.losses[l].mean;
    mean = (mean * before + next.losses[l].mean * added) / (before + added);
  }
  to.step = next.step;
  to.seconds = next.seconds;
  to.learning_rate = next.learning_rate;
  to.samples += next.samples;
  to.pieces += next.pieces;
}

}  // namespace

void AddToCurve(JobResult::CurvePoint point, std::vector<JobResult::CurvePoint>& curve) {
  // Every complete point has as many pieces as the first one.
  if (!curve.empty() && curve.back().pieces < curve.front().pieces) {
    return Merge(point, curve.back());
  }
  if (curve.size() == kCurvePointsMax) {
    for (size_t i = 0; i < curve.size() / 2; ++i) {
      JobResult::CurvePoint pair = std::move(curve[2 * i]);
      Merge(curve[2 * i + 1], pair);
      curve[i] = std::move(pair);
    }
    curve.resize(curve.size() / 2);
  }
  curve.push_back(std::move(point));
}

}  // namespace dt::scheduler
