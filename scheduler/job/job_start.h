// How a job begins: its processes join, workers read their data, a plan is made, and all processes
// are started with it. JobPhase shows the order.
#pragma once

#include <optional>

#include "common/plan/plan.h"
#include "scheduler/state/job_context.h"

namespace dt::scheduler {

class JobStart {
 public:
  JobStart(JobContext& job, TimePoint now);

  // Errors: Malformed, if the worker has read other data than the workers before it.
  Status OnDataReady(const Member& from, DataReadyMessage data);
  // Ignored unless a plan was asked for, since the job may have ended meanwhile.
  Status OnPlanMade(TimePoint now, PlanMade made);
  // Enters the next phases as far as possible. Errors: Invalid, if the data does not fit the job.
  Status Advance(TimePoint now);
  // Errors: Timeout, if the start takes longer than cluster.start_timeout, planning not counted;
  // the error names the late process. After a return to a checkpoint, cluster.wait_for_server is
  // how long processes may take to join again.
  Status CheckTime(TimePoint now) const;

  // For display; empty until the plan is made.
  const std::optional<Plan>& plan() const { return plan_; }

 private:
  // Whether all have joined, or after a return, all that are expected, or else enough in time.
  bool HasAll(TimePoint now) const;
  bool HasEnough() const;
  void StartPlanning(TimePoint now);
  // The first member that the current phase waits for: in reading a worker, in starting any. Null
  // if there is none.
  const Member* Late() const;

  JobContext& job_;
  const TimePoint begin_;
  TimePoint deadline_;
  std::optional<TimePoint> planning_since_;
  std::optional<Plan> plan_;
};

}  // namespace dt::scheduler
