// The curve of a job's losses from its first step on. It has few points however long the job is: at
// kCurvePointsMax points, pairs of neighbours are merged, and later points cover as many steps as
// the merged ones. Pure functions.
#pragma once

#include <vector>

#include "common/cluster/job_result.h"

namespace dt::scheduler {

inline constexpr size_t kCurvePointsMax = 512;

// REQUIRES: `point` has samples and continues `curve`, which only this function has changed.
void AddToCurve(JobResult::CurvePoint point, std::vector<JobResult::CurvePoint>& curve);

}  // namespace dt::scheduler
