// A run that trains: hands out what the schedule says, takes the results back, and completes
// checkpoints.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "scheduler/job/checkpoint_commit.h"
#include "scheduler/job/job_context.h"
#include "scheduler/job/progress.h"
#include "scheduler/schedule/job_schedule.h"
#include "scheduler/schedule/work_queue.h"

namespace dt::scheduler {

class TrainingRun {
 public:
  // The record of a run that is about to begin, anew or at the job's checkpoint.
  static TrainingRecord Begin(const JobOptions& options, const DataReadyMessage& data);
  // REQUIRES: `record` is part of the job's.
  TrainingRun(JobContext& job, TrainingRecord& record, TimePoint now);

  // Hands out what may go out now.
  Result<RunState> HandOut(TimePoint now);
  Status OnCompleted(TimePoint now, OrderTracker::Completed done);
  Status OnRowsWritten(TimePoint now, const Member& from, const RowsWrittenMessage& written);
  // A server's process has died, and another has taken its place.
  Status OnReplaced(TimePoint now, const Member& server);
  // Asks for a checkpoint where a server's log is too long, as that cuts it.
  void OnReport(TimePoint now, const Member& from, const HeartbeatMessage& report);
  void Tick(TimePoint now) { pace_.Update(now, StepsDone(schedule_, ReportedStep())); }
  // Stops at the next step boundary, with a checkpoint if any are made during training.
  void RequestStop() { schedule_.RequestStop(); }
  // For a worker that asks what of an order to do next.
  SplitMessage NextParts(uint64_t order) { return work_.Next(order); }

  const JobSchedule& schedule() const { return schedule_; }
  const TrainingRecord& record() const { return record_; }
  Progress progress() const;
  // How long a step of this run took; nothing if none was done.
  std::optional<JobResult::PlanCheck> plan_check() const;
  // When this run last completed steps, and a checkpoint.
  std::optional<TimePoint> last_step_at() const { return last_step_at_; }
  std::optional<TimePoint> last_checkpoint_at() const { return last_checkpoint_at_; }

 private:
  bool asynchronous() const { return job_.options.job.train.asynchronous(); }
  Step ReportedStep() const;
  Status IssueLoad();
  Result<Order> OrderOf(const schedule::Order& next);
  std::vector<uint32_t> SliceOwners() const;
  Status OnTrained(TimePoint now, OrderTracker::Completed done);
  Status OnEvaluated(TimePoint now, OrderTracker::Completed done);
  void OnLoaded(TimePoint now, const LoadOrder& load);
  void WarnIfDiverged(TimePoint now, const LossMean& mean, std::string_view data);
  Manifest ManifestNow() const;
  Status SettleCheckpoint(TimePoint now);
  Status CompleteCheckpoint(TimePoint now, const CheckpointCommit::Settled& settled);

  JobContext& job_;
  TrainingRecord& record_;
  JobSchedule schedule_;
  WorkQueue work_;
  CheckpointCommit checkpoint_;

  Pace pace_;
  std::set<std::string> diverged_;  // Losses that have been warned of.
  TimePoint trained_until_{};       // Asynchronous: training up to here is counted.
  TimePoint committed_at_{};        // When servers that keep a log were told of a checkpoint.
  std::optional<TimePoint> last_step_at_, last_checkpoint_at_;
};

}  // namespace dt::scheduler
