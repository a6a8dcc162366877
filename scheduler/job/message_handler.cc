// What the job does with each kind of message from a member.
#include "common/control/link_core.h"
#include "scheduler/job/job.h"

namespace dt::scheduler {

// One overload for each kind of message.
struct Job::MessageHandler {
  Job& job;
  TimePoint now;
  const Member& from;

  Status operator()(KvPutMessage put) {
    Result<std::vector<Rendezvous::Answer>> answers = job.rendezvous_.Put(std::move(put));
    if (!answers.ok()) return Prefixed(answers.status(), from.Name());
    job.Send(*answers);
    return OkStatus();
  }
  Status operator()(const KvGetMessage& get) {
    job.Send(job.rendezvous_.Get(from.incarnation(), get));
    return OkStatus();
  }
  Status operator()(const SplitRequestMessage& request) {
    const SplitMessage none{.order = request.order, .number = request.number};
    job.out_.Send(from, job.training_ ? job.training_->NextParts(from.id, request) : none);
    return OkStatus();
  }
  Status operator()(const HeartbeatMessage& report) {
    job.members_.Report(from.incarnation(), report);
    job.moves_.OnReport(now, from, report);
    if (job.training_) job.training_->OnReport(now, from, report);
    return OkStatus();
  }
  Status operator()(DataReadyMessage data) {
    job.OnDataReady(now, from, std::move(data));
    return OkStatus();
  }
  Status operator()(const ReadyMessage&) {
    job.members_.SetReady(from.id);
    job.recovery_.OnRecovered(now, from);
    return OkStatus();
  }
  Status operator()(OrderDoneMessage done) {
    if (job.training_) job.training_->OnReported(from.id, done.order);
    const Status status = job.orders_.OnDone(from.id, std::move(done));
    return status.ok() ? status : Prefixed(status, from.Name());
  }
  Status operator()(const RowsWrittenMessage& written) {
    return job.training_ ? job.training_->OnRowsWritten(now, from, written) : OkStatus();
  }
  Status operator()(const ViewReportMessage& report) { return job.views_.OnReport(from, report); }
  Status operator()(const RecalledMessage& answer) {
    return job.training_ ? job.training_->OnRecalled(from, answer) : OkStatus();
  }
  Status operator()(const ShardCopiedMessage& copied) {
    job.moves_.OnCopied(from, copied);
    return OkStatus();
  }
  Status operator()(const StreamReportMessage& report) {
    if (job.training_) job.training_->OnStreamReport(report);
    return OkStatus();
  }
  Status operator()(const FailedMessage& failed) {
    job.out_.AddEvent(now, fmt::format("{}_failed", NameOf(from.role())),
                      {{"id", int64_t{from.id.value()}}});
    StatusCode code = failed.code;  // Only a request to stop cancels a job.
    if (code == StatusCode::kCancelled && !job.stopping()) code = StatusCode::kUnavailable;
    if (code == StatusCode::kOk) code = StatusCode::kInternal;  // A failure must not report OK.
    const Status why = Prefixed(StatusOf(code, failed.problem), from.Name());
    if (job.ReturnFromDamaged(now, from, why)) return OkStatus();
    if (from.role() == Role::kWorker && job.training_ && !job.views_.Has(from.id)) {
      job.Dismiss(from, ToText(why));
      return OkStatus();
    }
    // What its machine lacks, others may have. Any other failure may be one of the job.
    const bool of_machine =
        code == StatusCode::kUnavailable || code == StatusCode::kResourceExhausted;
    if (!of_machine || !job.Remove(now, from, "has failed: " + failed.problem.what)) return why;
    job.JoinOrphans(now);
    return OkStatus();
  }
  Status operator()(const LeavingMessage&) {
    if (job.stopping()) return job.Stopped();
    if (from.role() == Role::kWorker && job.views_.CheckLoss(from).ok()) {
      job.LoseWorker(now, from, "was stopped");
      return OkStatus();
    }
    if (!job.recovery_.CanReplace(from)) return Unavailable("{} was stopped", from.Name());
    job.recovery_.SetAway(now, from, "was stopped");
    return OkStatus();
  }
  template <class Other>
  Status operator()(const Other& other) {
    return Internal("{} sends {}, which only a scheduler does", from.Name(),
                    NameOf(ControlMessage(other)));
  }
};

Status Job::Take(TimePoint now, const Member& from, ControlMessage message) {
  MessageHandler handler{*this, now, from};
  return std::visit([&](auto& its) { return handler(std::move(its)); }, message);
}

}  // namespace dt::scheduler
