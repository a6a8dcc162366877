// The workers of a job, as numbered views. Training goes on while workers are lost, join and leave:
// the next view is formed.
//
//   stable ─Without, Admit: written down, NewView to all─▶ forming ─all have reported─▶ stable
//
// Every member of every shard refuses the old view before it reports, so that a worker that was
// only paused can complete no step any more. What is complete then stays complete: a step is if
// some server or worker knows so, and then every worker has entered its barrier. Any other step is
// done again from the beginning. If another worker is lost meanwhile, the next view is formed.
// Reports are states: a restarted scheduler asks again.
//
// A worker that joins gets ready beside training, and enters the next view, in which another gives
// it the values. If there is no slice of a step for it, it is a spare: it waits, and enters when
// another is lost.
//
// Asynchronous workers have no values and no steps in common: all that servers have applied stays,
// and the slices of a lost worker go to others (OrderTracker, WorkQueue). They join and leave when
// no order is out. A plain state machine.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/control/messages.h"
#include "common/plan/plan.h"
#include "scheduler/membership/rests.h"
#include "scheduler/membership/suspects.h"
#include "scheduler/state/job_context.h"

namespace dt::scheduler {

class WorkerViews {
 public:
  explicit WorkerViews(JobContext& job) : job_(job) {}

  // Nothing, or why the workers of this job stay as they are.
  Status CheckChanges() const;
  // Nothing, or why the job cannot go on without this worker.
  Status CheckLoss(const Member& worker) const;
  // Nothing, or why this process cannot do what the plan asks of a worker.
  Status CheckDevices(const JoinMessage& join, const std::optional<Plan>& plan) const;
  bool Has(ProcessId worker) const;
  size_t PlacesMax() const;
  // Whether Admit, or a view without those that are asked to leave, would change anything.
  bool WantsChange(TimePoint now) const;
  // Workers that are ready, not asked to leave, and wait for a place, in order of id.
  std::vector<ProcessId> Spares() const;

  // Forms a view without these workers, which are still members.
  void Without(TimePoint now, const std::set<ProcessId>& workers);
  // Forms a view with the workers that are ready, if the present one lacks some and has a place.
  // REQUIRES: nothing but training is out.
  void Admit(TimePoint now);
  // Errors: Internal, if the report cannot be true.
  Status OnReport(const Member& from, const ViewReportMessage& report);
  // A worker without which the others go on, as it holds them up.
  std::optional<Suspect> InTheWay(TimePoint now);
  // It has to leave for that: others of its machine may have to rest before they enter.
  void OnInTheWay(TimePoint now, ProcessId worker);
  // Nothing is expected of this server any more.
  void OnServerGone(ProcessId server) { record().missing.erase(server); }
  bool forming() const { return job_.record.views.forming; }
  // When the workers began to change; empty if they do not.
  std::optional<TimePoint> since() const { return since_; }
  // If all have reported, begins the view: sends it, and the orders that are out, to its workers.
  // Errors: Unavailable, if no worker is left that has the values.
  Status Settle(TimePoint now);
  // Sends a process that begins a session what it may have missed of the newest view.
  void SendTo(const Member& to) const;

 private:
  ViewsRecord& record() const { return job_.record.views; }
  View view() const;
  Duration RestOf(TimePoint now, ProcessId worker) const;
  // The spares that need not rest.
  std::vector<ProcessId> Rested(TimePoint now) const;
  void NoteWaits(TimePoint now, ProcessId spare, const std::string& why);
  void Form(TimePoint now, std::vector<ProcessId> workers);
  Result<Step> CompleteSteps() const;
  std::vector<ProcessId> Newcomers() const;
  void NoteBegun(TimePoint now);

  JobContext& job_;
  std::optional<TimePoint> since_;   // The workers began to change; for the event.
  std::optional<TimePoint> formed_;  // The newest view was announced, or this scheduler began.
  std::set<ProcessId> noted_;        // Spares that people were told of.
  Rests rests_;
};

}  // namespace dt::scheduler
