// A job, from the first process that joins to the last Stop. Passes each message to the state
// machine that handles it, and ends the job when one of them returns an error or finishes. JobPhase
// shows a job's life.
//
// A job has no clock, socket, disk or thread of its own: messages, ticks and plans come in,
// messages go out; JobEnvironment provides disk and planner. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/control/process_end.h"
#include "scheduler/elastic/admission.h"
#include "scheduler/elastic/server_recovery.h"
#include "scheduler/elastic/shard_moves.h"
#include "scheduler/elastic/worker_views.h"
#include "scheduler/job/evaluation_run.h"
#include "scheduler/job/job_start.h"
#include "scheduler/job/training_run.h"
#include "scheduler/results/totals.h"
#include "scheduler/state/job_context.h"

namespace dt::scheduler {

class Job {
 public:
  // Starts a new job. REQUIRES: the options' job and the environment outlive it.
  Job(const JobOptions& options, JobEnvironment& environment, TimePoint now);
  // Continues a training job from the record that another scheduler wrote.
  Job(const JobOptions& options, JobEnvironment& environment, JobRecord record, TimePoint now);
  Job(const Job&) = delete;  // Not copyable, because context_ refers to other data members.
  Job& operator=(const Job&) = delete;

  // A message of a process that joins or has joined.
  void On(TimePoint now, Incarnation from, ControlMessage message);
  void On(TimePoint now, PlanMade made);
  // Call at least four times in a lease, after handling all messages that have arrived.
  void Tick(TimePoint now);
  // A process of the job on `host` has ended, as reported by the program that started it.
  void OnProcessEnd(TimePoint now, const std::string& host, const ProcessEnd& end);
  // A server is to give away its shards and to end. Errors: Invalid, with the reason.
  Status Drain(TimePoint now, ProcessId server);
  // The job is to have so many servers or workers. Servers beyond them drain, workers leave; others
  // are for the user, or `launch`, to start. Errors: Invalid, with the reason.
  Status Scale(TimePoint now, Role role, uint32_t count);
  // A clean stop at the next step boundary.
  void RequestStop(TimePoint now);
  // The job fails.
  void Fail(TimePoint now, Status why);
  // How a job that returns to a checkpoint begins again.
  struct Beginning {
    JobRecord record;
    std::optional<JobOptions::Checkpoint> checkpoint;
    std::vector<JoinMessage> joins;  // These processes have already asked.
  };
  // Ask after each call. If it is set, another Job of this record takes the place of this one,
  // which does nothing any more; the messages that it has left go out once the record is on disk.
  std::optional<Beginning> TakeBeginning() { return std::exchange(beginning_, std::nullopt); }
  // The scheduler itself was suspended for `by`: leases grow by it, since members could not be
  // heard.
  void ExtendLeases(TimePoint now, Duration by) { members_.ExtendLeases(now, by); }
  std::vector<Outgoing> TakeOutgoing() { return out_.TakeMessages(); }

  const JobConfig& config() const { return options_.job; }
  const JobRecord& record() const { return record_; }
  JobPhase phase() const { return record_.phase; }
  // How the job has ended: OK, Cancelled (stopped on request), or why it failed.
  const Status& outcome() const { return outcome_; }
  const Membership& membership() const { return members_; }
  const ShardMoves& moves() const { return moves_; }
  const WorkerViews& views() const { return views_; }
  // Time since this scheduler's start.
  double SecondsAt(TimePoint now) const { return SecondsBetween(begin_, now); }
  Duration AgeAt(TimePoint now) const { return now - begin_; }
  // When this object was made: after a return, its beginning.
  TimePoint began() const { return began_; }
  // For display; empty until the plan is made.
  const std::optional<Plan>& plan() const { return start_.plan(); }
  // Set once the run has begun; only one of the two is.
  const TrainingRun* training() const { return training_ ? &*training_ : nullptr; }
  const EvaluationRun* evaluation() const { return evaluation_ ? &*evaluation_ : nullptr; }
  // Set once the Finish order is done.
  const std::optional<Totals>& totals() const { return record_.totals; }

 private:
  struct MessageHandler;
  // Handles a message from a member (message_handler.cc); an error ends the job.
  Status Take(TimePoint now, const Member& from, ControlMessage message);
  void TakeJoin(TimePoint now, Incarnation from, const JoinMessage& join);

  // Does everything that can be done now; an error ends the job.
  void Advance(TimePoint now);
  Status TryAdvance(TimePoint now);
  Status BeginRun(TimePoint now);
  Status Complete(TimePoint now, OrderTracker::Completed done);
  Status HandOut(TimePoint now);
  void SettleSuccessors(TimePoint now);
  // `to` has taken the place of a server that died.
  Status BriefSuccessor(TimePoint now, const Member& to);
  // Of a process that was removed, and lives.
  bool DismissIfGone(Incarnation from);
  // The worker is a member no more, and hears so. `requested`: by the user.
  void Dismiss(const Member& worker, std::string why, bool requested = false);
  // Whether some report was made by another map than the present one, as chains changed meanwhile.
  bool IsMixed(const OrderTracker::Completed& finish) const;
  // Sends what a process needs that begins a session: the start, the orders that it has not carried
  // out, and a recall that it has not answered. Nothing before the job starts.
  void SendState(const Member& to);
  // A process is lost. The job goes on without it, as far as others have what it had. If it has
  // more, the job waits for its successor, or returns to the last checkpoint, or ends.
  void Lose(TimePoint now, const ServerRecovery::Loss& loss);
  // Takes the server out of the chains that have other members. Returns whether it is gone.
  bool Remove(TimePoint now, const Member& server, const std::string& how);
  void JoinOrphans(TimePoint now);
  void MoveShards(TimePoint now);
  void ReleaseDrained(TimePoint now);
  // Nothing, or why this process may not join now.
  Status CheckLateJoin(const JoinMessage& join) const;
  // Nothing, or why shards may not change servers.
  Status CheckMoves() const;
  // The job goes on without the worker.
  void LoseWorker(TimePoint now, const Member& worker, const std::string& how);
  void OnDataReady(TimePoint now, const Member& from, DataReadyMessage data);
  // Lets workers that are ready take part, and those go that the user does not want.
  void ChangeWorkers(TimePoint now);
  Status ScaleServers(TimePoint now, uint32_t count);
  Status ScaleWorkers(uint32_t count);
  void FailLost(TimePoint now, const Member& member, const std::string& how);
  // Whether the job may begin again from its last checkpoint.
  bool MayReturn() const;
  void Return(TimePoint now, const ServerRecovery::Loss& loss);
  // Begins again from a checkpoint, because of `why`, with `expected` processes.
  void BeginAgain(TimePoint now, const std::string& why,
                  std::vector<ReturnsRecord::Expected> expected);
  std::vector<ReturnsRecord::Expected> ExpectedWithout(const ServerRecovery::Loss& loss) const;
  // While processes gather: the place of the member is free for another.
  bool Vacate(TimePoint now, const ServerRecovery::Loss& loss);
  void OnEndBeforeJoin(TimePoint now, const std::string& host, const ProcessEnd& end);
  // Whether the checkpoint that the job loads is damaged, by the error of a member: then the job
  // returns to the one before.
  bool ReturnFromDamaged(TimePoint now, const Member& from, const Status& why);
  // The same when no worker is left that has the dense parameters.
  bool ReturnWithoutValues(TimePoint now, const Status& why);
  void NoteReturned(TimePoint now);
  void End(TimePoint now, Status outcome);
  void Send(const std::vector<Rendezvous::Answer>& answers);
  bool stopping() const { return training_ && training_->record().schedule.stop_requested; }
  // The outcome of a job that was stopped on request.
  Status Stopped() const;
  // "--resume auto goes on from FOLDER"; empty without a checkpoint.
  std::string ResumeHint() const;

  const JobOptions options_;
  const TimePoint begin_;
  const TimePoint began_;  // This object, or again from a checkpoint.
  JobRecord record_;
  Status outcome_;
  std::optional<Beginning> beginning_;

  // The state machines and what they share.
  Outbox out_;
  Membership members_;
  OrderTracker orders_;
  JobContext context_;
  WorkerViews views_;
  Rendezvous rendezvous_;
  Admission admission_;
  JobStart start_;
  ServerRecovery recovery_;
  ShardMoves moves_;
  std::optional<TrainingRun> training_;
  std::optional<EvaluationRun> evaluation_;
};

}  // namespace dt::scheduler
