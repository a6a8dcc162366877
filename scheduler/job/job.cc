#include "scheduler/job/job.h"

#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/control/link_core.h"
#include "common/wire/data.h"
#include "scheduler/shards/chains.h"
#include "scheduler/state/stripes.h"

namespace dt::scheduler {
namespace {

MembershipNeeds NeedsOf(const JobConfig& job, uint64_t run) {
  return {job.cluster.servers, job.cluster.workers, job.fingerprint, run,
          kWireVersion,        job.cluster.lease};
}

}  // namespace

Job::Job(const JobOptions& options, JobEnvironment& environment, TimePoint now)
    : Job(options, environment,
          {.generation = options.generation,
           .run = options.run,
           .resumed_from = options.resumed() ? options.resumed()->folder : "",
           .begins_from =
               options.begins() ? std::optional(options.checkpoint->folder) : std::nullopt},
          now) {}

Job::Job(const JobOptions& options, JobEnvironment& environment, JobRecord record, TimePoint now)
    : options_(options),
      begin_(now - options.age),
      began_(now),
      record_(std::move(record)),
      out_(begin_, record_.events),
      members_(NeedsOf(options.job, record_.run), record_.members, now),
      orders_(record_.orders),
      context_{options_, environment, record_, members_, orders_, out_},
      views_(context_),
      rendezvous_(record_.rendezvous),
      admission_(context_),
      start_(context_, now),
      recovery_(context_, admission_),
      moves_(context_) {
  if (record_.returns.count > 0) members_.AdmitLater(options_.job.cluster.shards);
  if (std::exchange(record_.term, options.term) != Term()) {
    out_.AddEvent(now, "scheduler_restarted",
                  {{"term", static_cast<int64_t>(options.term.value())}});
  }
  if (record_.end.has_value()) outcome_ = StatusOf(record_.end->code, record_.end->problem);
  if (record_.training.has_value()) training_.emplace(context_, *record_.training, now);
}

// ------------------------------------------------------------ messages

void Job::On(TimePoint now, Incarnation from, ControlMessage message) {
  const Member* const member = members_.Find(from);
  // This process had only been silent.
  if (member != nullptr && members_.presence(member->id).away_since.has_value()) {
    recovery_.OnRecovered(now, *member);
  }
  members_.Heard(now, from);
  if (const auto* join = std::get_if<JoinMessage>(&message)) {
    TakeJoin(now, from, *join);
  } else if (member == nullptr) {
    DismissIfGone(from);
  } else {
    const Status status = Take(now, *member, std::move(message));
    if (!status.ok()) Fail(now, status);
  }
  Advance(now);
}

void Job::On(TimePoint now, PlanMade made) {
  const Status status = start_.OnPlanMade(now, std::move(made));
  if (!status.ok()) return Fail(now, status);
  Advance(now);
}

void Job::TakeJoin(TimePoint now, Incarnation from, const JoinMessage& join) {
  if (join.incarnation != from) {
    return admission_.Refuse(now, from, join.role, Invalid("a process joins under another's name"));
  }
  const Member* const known = members_.Find(from);
  if (DismissIfGone(from)) return;
  if (phase() == JobPhase::kEnded) {
    if (known != nullptr) return out_.Send(*known, *record_.end);
    return admission_.Refuse(now, from, join.role, Unavailable("the job has ended"));
  }
  if (const Member* const former = members_.FindClaimed(join);
      former && phase() >= JobPhase::kStarting) {
    members_.SetClaimed(now, former->id);
  }
  if (known == nullptr && members_.FindToken(join.server_token) != nullptr) {
    recovery_.AddSuccessor(now, join);
    return SettleSuccessors(now);
  }
  if (known == nullptr && phase() >= JobPhase::kStarting) {
    const Status late = CheckLateJoin(join);
    if (!late.ok()) return admission_.Refuse(now, from, join.role, late);
    members_.AdmitLater(options_.job.cluster.shards);
  }
  admission_.Join(now, join);
  // It has begun a new session, or is a server that joins later.
  if (const Member* const member = members_.Find(from)) SendState(*member);
}

void Job::Send(const std::vector<Rendezvous::Answer>& answers) {
  for (const Rendezvous::Answer& answer : answers) out_.Send(answer.to, answer.message);
}

// ------------------------------------------------------------ ticks and progress

void Job::Tick(TimePoint now) {
  if (phase() == JobPhase::kEnded) return;
  while (const std::optional<ServerRecovery::Loss> loss = recovery_.CheckLeases(now)) {
    Lose(now, *loss);
    if (phase() == JobPhase::kEnded) return;
  }
  if (const auto suspect = recovery_.CheckSuspects(now); suspect && phase() == JobPhase::kRunning) {
    Lose(now, *suspect);
  }
  if (const auto worker = views_.InTheWay(now); worker && phase() == JobPhase::kRunning) {
    views_.OnInTheWay(now, worker->id);
    Lose(now, {worker->id, worker->how});
  }
  SettleSuccessors(now);
  const Status in_time = start_.CheckTime(now);
  if (!in_time.ok()) Fail(now, in_time);
  if (training_) training_->Tick(now);
  Advance(now);
}

void Job::Advance(TimePoint now) {
  const Status status = TryAdvance(now);
  if (!status.ok()) Fail(now, status);
}

Status Job::TryAdvance(TimePoint now) {
  DT_TRY_STATUS(start_.Advance(now));
  if (phase() != JobPhase::kRunning) return OkStatus();
  if (!training_ && !evaluation_) {
    DT_TRY_STATUS(BeginRun(now));
    NoteReturned(now);
  }
  if (const Status settled = views_.Settle(now); !settled.ok()) {
    return ReturnWithoutValues(now, settled) ? OkStatus() : settled;
  }
  ChangeWorkers(now);
  if (views_.forming()) return OkStatus();
  while (std::optional<OrderTracker::Completed> done = orders_.TakeCompleted()) {
    DT_TRY_STATUS(Complete(now, *std::move(done)));
  }
  if (training_ && orders_.empty()) ChangeWorkers(now);
  if (views_.forming()) return OkStatus();
  return HandOut(now);
}

Status Job::BeginRun(TimePoint now) {
  if (options_.goal == Goal::kEvaluate) {
    evaluation_.emplace(context_);
    return OkStatus();
  }
  DT_TRY(record_.training, TrainingRun::Begin(options_, record_));
  if (record_.stream_begins.empty()) record_.stream_begins = record_.training->schedule.stream.next;
  if (record_.returns.count > 0) record_.training->had_finished = false;  // This run trained.
  training_.emplace(context_, *record_.training, now);
  return OkStatus();
}

Status Job::Complete(TimePoint now, OrderTracker::Completed done) {
  if (std::holds_alternative<FinishOrder>(done.order.what)) {
    if (IsMixed(done)) {
      Issue(context_, FinishOrder{}, Audience::kWorkersAndServers);
      return OkStatus();
    }
    DT_TRY(record_.totals, TotalsOf(done.TakeOutcomes<FinishDone>(), members_, options_.job));
  }
  return training_ ? training_->OnCompleted(now, std::move(done))
                   : evaluation_->OnCompleted(now, std::move(done));
}

Status Job::HandOut(TimePoint now) {
  MoveShards(now);
  DT_TRY(const RunState state, training_ ? training_->HandOut(now) : evaluation_->HandOut());
  if (state == RunState::kInterrupted) return Stopped();
  if (state == RunState::kFinished) End(now, OkStatus());
  return OkStatus();
}

void Job::RequestStop(TimePoint now) {
  if (stopping() || phase() == JobPhase::kEnded) return;
  LogInfo("job.stopping", {{"phase", NameOf(phase())}});
  if (!training_) return End(now, Stopped());
  training_->RequestStop();
  Advance(now);
}

// ------------------------------------------------------------ successors

bool Job::IsMixed(const OrderTracker::Completed& finish) const {
  if (record_.map.version == record_.start.view.map.version) return false;
  return std::ranges::any_of(finish.outcomes, [this](const auto& outcome) {
    const Member* const member = members_.Find(outcome.first);
    if (member == nullptr) return true;
    return member->role() == Role::kServer &&
           std::get<FinishDone>(outcome.second).map != record_.map.version;
  });
}

void Job::SettleSuccessors(TimePoint now) {
  for (const ProcessId id : recovery_.SettleSuccessors(now)) {
    const Status briefed = BriefSuccessor(now, *members_.Find(id));
    if (!briefed.ok()) Fail(now, briefed);
  }
}

Status Job::BriefSuccessor(TimePoint now, const Member& to) {
  if (phase() < JobPhase::kStarting) {
    recovery_.OnRecovered(now, to);
    return OkStatus();
  }
  if (training_) DT_TRY_STATUS(training_->OnReplaced(now, to));
  SendState(to);
  return OkStatus();
}

void Job::SendState(const Member& to) {
  const bool reads = to.role() == Role::kWorker && !to.read && phase() >= JobPhase::kReading;
  if (reads && options_.job.data.by_slices) SendReadData(context_, to);
  if (phase() < JobPhase::kStarting) return;
  // It joins later, and its data is not compared yet.
  if (to.role() == Role::kWorker && !to.read) return;
  const bool committed = training_ && training_->record().committed.has_value();
  if (committed && to.role() == Role::kServer) out_.Send(to, *training_->record().committed);
  SendStart(context_, to);
  out_.Send(to, MapChangedMessage{record_.map});
  views_.SendTo(to);
  if (to.role() == Role::kWorker && views_.forming()) return;
  for (OrderMessage& order : orders_.OutTo(to.id)) out_.Send(to, std::move(order));
  if (const auto recall = orders_.RecallTo(to.id)) out_.Send(to, *recall);
}

// ------------------------------------------------------------ the end

void Job::Fail(TimePoint now, Status why) {
  DT_CHECK(!why.ok());
  End(now, std::move(why));
}

void Job::End(TimePoint now, Status outcome) {
  if (phase() == JobPhase::kEnded) return;
  record_.phase = JobPhase::kEnded;
  outcome_ = std::move(outcome);
  record_.end = StopMessage{outcome_.code(), ProblemOf(outcome_)};
  for (const Member& member : members_.members()) out_.Send(member, *record_.end);
  recovery_.RefuseSuccessors(now, Unavailable("the job has ended"));
  out_.AddEvent(now, "ended",
                {{"status", std::string(outcome_.ok() ? "completed" : ToText(outcome_))}});
}

std::string Job::ResumeHint() const {
  if (record_.last_checkpoint.empty()) return "";
  return fmt::format("--resume auto goes on from {}", record_.last_checkpoint);
}

Status Job::Stopped() const {
  if (!training_) return Cancelled("the job was stopped before its first step");
  Status status = Cancelled("the job was stopped at step {}", training_->schedule().state().step);
  return WithHint(std::move(status), record_.last_checkpoint.empty()
                                         ? "no checkpoint was made; checkpoint.every makes some"
                                         : ResumeHint());
}

}  // namespace dt::scheduler
