// How a job begins: its processes gather, workers read their data, a plan is made, and all are
// started with it. See JobPhase for the order.
#pragma once

#include <optional>

#include "common/plan/plan.h"
#include "scheduler/job/job_context.h"

namespace dt::scheduler {

class JobStart {
 public:
  JobStart(JobContext& job, TimePoint now);

  // Malformed: it has read other data than the workers before it.
  Status OnDataReady(const Member& from, DataReadyMessage data);
  // Ignored unless a plan is asked for: the job may have ended meanwhile.
  Status OnPlanMade(TimePoint now, PlanMade made);
  // Goes on to the next phases, as far as everything for them is there. Invalid: the data does not
  // do for the job.
  Status Advance(TimePoint now);
  // Timeout: too much time has passed since the beginning; the time that planning takes does not
  // count. Names who is late.
  Status CheckTime(TimePoint now) const;

  // For people; nothing before it is made.
  const std::optional<Plan>& plan() const { return plan_; }

 private:
  void StartPlanning(TimePoint now);
  // The first member that is waited for: in phase reading a worker, in starting any. Null if there
  // is none.
  const Member* Late() const;

  JobContext& job_;
  const TimePoint begin_;
  TimePoint deadline_;
  std::optional<TimePoint> planning_since_;
  std::optional<Plan> plan_;
};

}  // namespace dt::scheduler
