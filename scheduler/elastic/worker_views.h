// The workers of a job, as numbered views. A worker that is lost does not end synchronous training:
// a view without it is formed.
//
//   stable ─Without: written down, NewView to all─▶ forming ─all have reported─▶ stable
//
// Every member of every shard refuses the old view before it reports, so that a worker that was
// only paused can complete no step any more. What is complete then stays complete: a step is if
// some server or worker knows so, and then every worker has entered its barrier. Any other step is
// done again from the beginning. If another worker is lost meanwhile, the next view is formed.
// Reports are states: a restarted scheduler asks again. A plain state machine.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/control/messages.h"
#include "scheduler/state/job_context.h"

namespace dt::scheduler {

class WorkerViews {
 public:
  explicit WorkerViews(JobContext& job) : job_(job) {}

  // Nothing, or why the job cannot go on without this worker.
  Status CheckLoss(const Member& worker) const;
  // Forms a view without this worker, which is still a member.
  void Without(TimePoint now, ProcessId worker);
  // Errors: Internal, if the report cannot be true.
  Status OnReport(const Member& from, const ViewReportMessage& report);
  // Nothing is expected of this server any more.
  void OnServerGone(ProcessId server) { record().missing.erase(server); }
  bool forming() const { return job_.record.views.forming; }
  // If all have reported, begins the view: sends it, and the orders that are out, to its workers.
  Status Settle(TimePoint now);
  // Sends a process that begins a session what it may have missed of the newest view.
  void SendTo(const Member& to) const;

 private:
  ViewsRecord& record() const { return job_.record.views; }
  View view() const;
  Result<Step> CompleteSteps() const;

  JobContext& job_;
  std::optional<TimePoint> since_;  // A worker was lost; for the event.
};

}  // namespace dt::scheduler
