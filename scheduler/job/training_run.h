// A run that trains: issues the orders that the schedule asks for, takes in their results, and
// completes checkpoints.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "scheduler/job/progress.h"
#include "scheduler/schedule/job_schedule.h"
#include "scheduler/schedule/work_queue.h"
#include "scheduler/state/checkpoint_commit.h"
#include "scheduler/state/job_context.h"

namespace dt::scheduler {

class TrainingRun {
 public:
  // The record of a run that starts at step 0 or at the job's checkpoint.
  // Errors: those of Stream::Begin.
  static Result<TrainingRecord> Begin(const JobOptions& options, const JobRecord& job);
  // REQUIRES: `record` is job.record.training.
  TrainingRun(JobContext& job, TrainingRecord& record, TimePoint now);

  // Issues all orders that may go out now.
  Result<RunState> HandOut(TimePoint now);
  Status OnCompleted(TimePoint now, OrderTracker::Completed done);
  // A worker has answered a recall of orders.
  Status OnRecalled(const Member& from, const RecalledMessage& answer);
  Status OnRowsWritten(TimePoint now, const Member& from, const RowsWrittenMessage& written);
  // The process of a server has died, and another has replaced it.
  Status OnReplaced(TimePoint now, const Member& server);
  // See CheckpointCommit::OnRemoved.
  Status OnRemoved(TimePoint now, ProcessId server, bool gone);
  // The job goes on without a worker, of which nothing is expected any more.
  void OnWorkerLost(ProcessId worker);
  // Asks for a checkpoint if the server's log is too long, since a checkpoint shortens the log.
  void OnReport(TimePoint now, const Member& from, const HeartbeatMessage& report);
  void OnStreamReport(const StreamReportMessage& report);
  void Tick(TimePoint now) { pace_.Update(now, StepsDone(schedule_, ReportedStep())); }
  // Stops at the next step boundary; makes a checkpoint first if the job makes any during training.
  void RequestStop() { schedule_.RequestStop(); }
  // Tells an asynchronous worker which steps of an order to do next.
  SplitMessage NextParts(ProcessId worker, const SplitRequestMessage& request);
  // The process has done all that it has got of the order.
  void OnReported(ProcessId from, uint64_t order) { work_.SetDone(order, from); }
  // Asynchronous workers change when no order is out: none is given out from the next boundary on,
  // until SetPaused(false).
  void SetPaused(bool paused) { schedule_.SetPaused(paused); }

  // Whether an order to save is out, which each server must carry out by the same map.
  bool cutting() const { return record_.checkpoint.stage == CheckpointRecord::Stage::kAsked; }
  bool saving() const { return !checkpoint_.idle(); }
  // Whether files of a checkpoint are missing that this process writes.
  bool WritesFiles(ProcessId process) const { return checkpoint_.writes(process); }
  const JobSchedule& schedule() const { return schedule_; }
  const TrainingRecord& record() const { return record_; }
  Progress progress() const;
  // Predicted and measured time of a step of this run; empty before the first step.
  std::optional<JobResult::PlanCheck> plan_check() const;
  // When this run last completed steps; when it last completed a checkpoint.
  std::optional<TimePoint> last_step_at() const { return last_step_at_; }
  std::optional<TimePoint> last_checkpoint_at() const { return last_checkpoint_at_; }

 private:
  bool asynchronous() const { return job_.options.job.train.asynchronous(); }
  Step ReportedStep() const;
  Status IssueLoad();
  void SaveByTime(TimePoint now);
  void RecallOrders();
  void EndRecall(const OrderTracker::Recalled& recalled);
  Result<Order> OrderOf(const schedule::Order& next);
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
  const uint64_t first_order_;  // The number of the first order that this scheduler issues.

  Pace pace_;
  std::set<std::string> diverged_;  // Losses that a warning was given for.
  TimePoint trained_until_{};       // Asynchronous: training time is counted up to here.
  TimePoint committed_at_{};        // When servers that keep a log were last told of a checkpoint.
  TimePoint saved_or_begun_;        // See CheckpointConfig::interval.
  std::optional<TimePoint> last_step_at_, last_checkpoint_at_;
};

}  // namespace dt::scheduler
