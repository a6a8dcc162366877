// Losses of processes: which ones the job goes on without, and how it ends otherwise.
#include "common/base/log.h"
#include "common/control/link_core.h"
#include "common/control/process_end.h"
#include "scheduler/job/job.h"
#include "scheduler/shards/chains.h"

namespace dt::scheduler {

// The end of the process was observed, so there is no need to wait for its lease.
void Job::OnProcessEnd(TimePoint now, const std::string& host, const ProcessEnd& end) {
  if (phase() == JobPhase::kEnded) return;
  recovery_.ForgetSuccessor(host, end.pid);
  const Member* const member = members_.FindProcess(host, end.pid);
  if (member == nullptr) {
    if (phase() == JobPhase::kGathering) OnEndBeforeJoin(now, host, end);
    return;
  }
  using Fate = ServerRecovery::Fate;
  Lose(now, {member->id, end.how, end.returns ? Fate::kReplaced : Fate::kEnded});
  Advance(now);
}

void Job::Lose(TimePoint now, const ServerRecovery::Loss& loss) {
  const Member& lost = *members_.Find(loss.id);
  if (Vacate(now, loss)) return;
  if (lost.role() == Role::kWorker && views_.CheckLoss(lost).ok()) {
    LoseWorker(now, lost, loss.how);
  } else if (Remove(now, lost, loss.how)) {
    JoinOrphans(now);
  } else if (recovery_.MayComeBack(lost, loss)) {
    recovery_.SetAway(now, lost, loss.how);
  } else if (loss.fate != ServerRecovery::Fate::kEnded && MayReturn()) {
    Return(now, loss);
  } else {
    FailLost(now, lost, loss.how);
  }
}

// The next view is formed without it.
void Job::LoseWorker(TimePoint now, const Member& worker, const std::string& how) {
  const ProcessId id = worker.id;
  const std::string why = fmt::format("{} {}", worker.Name(), how);
  out_.AddEvent(now, "worker_lost", {{"id", int64_t{id.value()}}, {"how", how}});
  LogWarn("job.goes_on_without_worker", {{"why", why}});
  if (views_.Has(id)) {
    views_.Without(now, {id});
    training_->OnWorkerLost(id);
  }
  Dismiss(worker, why);
}

void Job::Dismiss(const Member& worker, std::string why, bool requested) {
  const Incarnation incarnation = worker.incarnation();
  record_.gone.push_back({incarnation, std::move(why), requested, Role::kWorker});
  members_.Remove(worker.id);
  DismissIfGone(incarnation);
}

bool Job::Remove(TimePoint now, const Member& server, const std::string& how) {
  if (server.role() != Role::kServer || phase() < JobPhase::kStarting) return false;
  const ProcessId id = server.id;
  ShardMap next = Without(record_.map, id);
  const bool gone = !HasShards(next, id);
  const bool changed = next.version != record_.map.version;
  if (gone) {
    const std::string why = fmt::format("{} {}", server.Name(), how);
    record_.gone.push_back({server.incarnation(), why});
    DismissIfGone(server.incarnation());
    if (!recovery_.IsGone(id)) {
      out_.AddEvent(now, "server_lost", {{"id", int64_t{id.value()}}, {"how", how}});
    }
    recovery_.Forget(id);
    LogWarn("job.goes_on_without_server", {{"why", why}, {"map", next.version.value()}});
    members_.Remove(id);
    orders_.Remove(id);
    views_.OnServerGone(id);
  }
  if (changed) SetMap(context_, std::move(next));
  if (!training_ || !(gone || changed)) return gone;
  const Status settled = training_->OnRemoved(now, id, gone);
  if (!settled.ok()) Fail(now, settled);
  return gone;
}

// They have waited for a member to be away, and now it is none.
void Job::JoinOrphans(TimePoint now) {
  for (const JoinMessage& join : recovery_.TakeSuccessorsOfNobody()) {
    TakeJoin(now, join.incarnation, join);
  }
}

bool Job::DismissIfGone(Incarnation from) {
  const auto gone = std::ranges::find(record_.gone, from, &GoneProcess::incarnation);
  if (gone == record_.gone.end()) return false;
  if (gone->drained) {
    out_.Send(from, StopMessage{});
    return true;
  }
  if (gone->joins_again) {
    const Status again = Again("the job returns to a checkpoint: {}", gone->why);
    out_.Send(from, StopMessage{again.code(), ProblemOf(again)});
    return true;
  }
  const Status why = Unavailable("{}: {}", kGoneOnWithout, gone->why);
  out_.Send(from, StopMessage{why.code(), ProblemOf(why)});
  return true;
}

void Job::FailLost(TimePoint now, const Member& member, const std::string& how) {
  if (!recovery_.IsGone(member.id)) {
    out_.AddEvent(now, fmt::format("{}_lost", NameOf(member.role())),
                  {{"id", int64_t{member.id.value()}}, {"how", how}});
  }
  const std::string resume = ResumeHint();
  Fail(now, WithHint(Unavailable("{} {}", member.Name(), how),
                     "see its log" + (resume.empty() ? "" : "; " + resume)));
}

}  // namespace dt::scheduler
