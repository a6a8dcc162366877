#include "scheduler/service/job_state.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/written_paths.h"
#include "common/plan/plan_codec.h"
#include "common/wire/data.h"
#include "scheduler/service/status_of.h"

namespace dt::scheduler {
namespace {

constexpr Duration kRefusalLogs = seconds(1);  // At most one line per second about refused joins.

MembershipNeeds NeedsOf(const JobConfig& job) {
  return {job.cluster.servers, job.cluster.workers, job.fingerprint, kWireVersion,
          job.cluster.lease};
}

Status FromProblem(StatusCode code, const Problem& problem) {
  if (code == StatusCode::kOk) code = StatusCode::kInternal;  // A failure that says it is none.
  Status status = MakeStatus(code, problem.what);
  if (!problem.where.empty()) status = WithWhere(std::move(status), problem.where);
  if (!problem.hint.empty()) status = WithHint(std::move(status), problem.hint);
  return status;
}

int64_t NumberOf(ProcessId id) { return int64_t{id.value()}; }

// What differs between two workers' data, "" if nothing does.
std::string DifferenceOf(const DataReadyMessage& a, const DataReadyMessage& b) {
  if (a.train_rows != b.train_rows) {
    return fmt::format("{} and {} training samples", a.train_rows, b.train_rows);
  }
  if (a.valid_rows != b.valid_rows) {
    return fmt::format("{} and {} validation samples", a.valid_rows, b.valid_rows);
  }
  if (a.test_rows != b.test_rows) {
    return fmt::format("{} and {} test samples", a.test_rows, b.test_rows);
  }
  if (a.columns != b.columns) return "different columns";
  return a.fingerprint != b.fingerprint ? "different values" : "";
}

}  // namespace

std::string_view NameOf(JobPhase phase) {
  switch (phase) {
    case JobPhase::kGathering:
      return "gathering";
    case JobPhase::kReading:
      return "reading data";
    case JobPhase::kStarting:
      return "starting";
    case JobPhase::kRunning:
      return "running";
    case JobPhase::kEnded:
      return "ended";
  }
  DT_UNREACHABLE();
}

JobState::JobState(const JobOptions& options, JobSurroundings& surroundings, TimePoint now)
    : options_(options),
      surroundings_(surroundings),
      begin_(now),
      membership_(NeedsOf(options.job)),
      generation_(options.generation) {
  splits_ = SplitBoard(options.job.cluster.workers);
  slices_ = options.job.train.slices > 0 ? options.job.train.slices : options.job.cluster.workers;
}

void JobState::AddEvent(TimePoint now, std::string kind,
                        std::vector<std::pair<std::string, JobResult::Detail>> details) {
  for (auto& [name, detail] : details) {
    if (auto* const text = std::get_if<std::string>(&detail)) *text = WithWrittenPaths(*text);
  }
  events_.push_back({SecondsBetween(begin_, now), std::move(kind), std::move(details)});
}

void JobState::Send(const Member& to, ControlMessage message) {
  outgoing_.push_back({to.incarnation(), std::move(message)});
}

std::vector<Outgoing> JobState::TakeOutgoing() { return std::exchange(outgoing_, {}); }

void JobState::Answer(const std::vector<Rendezvous::Answer>& answers) {
  for (const Rendezvous::Answer& answer : answers) outgoing_.push_back({answer.to, answer.message});
}

void JobState::On(TimePoint now, Incarnation from, ControlMessage message) {
  const Member* const heard = membership_.Find(from);
  const bool was_away = heard != nullptr && heard->away_since.has_value();
  membership_.Heard(now, from);
  if (was_away) NoteReturn(now, *heard);  // The same process: it had only been silent.
  if (const auto* join = std::get_if<JoinMessage>(&message)) {
    Take(now, from, *join);
  } else if (const Member* member = membership_.Find(from); member != nullptr) {
    Take(now, *member, std::move(message));
  }
  Advance(now);
}

void JobState::Take(TimePoint now, Incarnation from, const JoinMessage& join) {
  const bool known = membership_.Find(from) != nullptr;
  Status refusal;
  if (join.incarnation != from) {
    refusal = Invalid("a process joins under another's name");
  } else if (phase_ == JobPhase::kEnded) {
    refusal = Unavailable("the job has ended");
  }
  if (refusal.ok() && !known && membership_.FindClaim(join.claim) != nullptr) {
    claimants_.push_back({join, now});
    return SettleClaims(now);
  }
  const Member* member = nullptr;
  if (refusal.ok()) {
    const Result<const Member*> joined = membership_.Join(now, join);
    refusal = joined.status();
    if (joined.ok()) member = *joined;
  }
  if (member == nullptr) return Refuse(now, from, join, refusal);
  Send(*member, WelcomeMessage{member->id, options_.term, options_.job.cluster.lease, false});
  if (known) return;
  const std::string role(NameOf(join.role));
  AddEvent(now, role + "_joined", {{"id", NumberOf(member->id)}, {"host", join.host}});
  LogInfo("member.joined", {{"who", member->Name()}});
}

void JobState::Refuse(TimePoint now, Incarnation to, const JoinMessage& join, const Status& why) {
  outgoing_.push_back({to, RefusedMessage{why.code(), ProblemOf(why)}});
  ++refused_;
  if (now < log_refusal_again_) return;
  log_refusal_again_ = now + kRefusalLogs;
  // A process that joins after the end of the job is harmless, hence no warning.
  const auto log = phase_ == JobPhase::kEnded ? LogInfo : LogWarn;
  log("member.refused",
      {{"role", NameOf(join.role)}, {"why", ToText(why)}, {"refused_so_far", refused_}});
}

void JobState::Take(TimePoint now, const Member& from, ControlMessage message) {
  if (auto* put = std::get_if<KvPutMessage>(&message)) {
    Result<std::vector<Rendezvous::Answer>> answers = rendezvous_.Put(std::move(*put));
    if (!answers.ok()) return Fail(now, Prefixed(answers.status(), from.Name()));
    Answer(*answers);
  } else if (const auto* get = std::get_if<KvGetMessage>(&message)) {
    Answer(rendezvous_.Get(from.incarnation(), *get));
  } else if (const auto* split = std::get_if<SplitRequestMessage>(&message)) {
    Send(from, splits_.Next(split->order));
  } else if (const auto* report = std::get_if<HeartbeatMessage>(&message)) {
    membership_.Report(from.incarnation(), *report);
    TakeReport(now, from, *report);
  } else if (auto* data = std::get_if<DataReadyMessage>(&message)) {
    TakeDataReady(now, from, std::move(*data));
  } else if (std::holds_alternative<ReadyMessage>(message)) {
    ready_.insert(from.id);
    if (lost_at_.contains(from.id)) NoteReturn(now, from);
  } else if (auto* done = std::get_if<OrderDoneMessage>(&message)) {
    const Status status = board_.OnDone(from.id, std::move(*done));
    if (!status.ok()) Fail(now, Prefixed(status, from.Name()));
  } else if (const auto* saved = std::get_if<SavedMessage>(&message)) {
    const Status status = TakeSaved(now, from, *saved);
    if (!status.ok()) Fail(now, status);
  } else if (const auto* failed = std::get_if<FailedMessage>(&message)) {
    AddEvent(now, fmt::format("{}_failed", NameOf(from.role())), {{"id", NumberOf(from.id)}});
    StatusCode code = failed->code;  // Only a request interrupts a job.
    if (code == StatusCode::kCancelled && !stop_requested_) code = StatusCode::kUnavailable;
    Fail(now, Prefixed(FromProblem(code, failed->problem), from.Name()));
  } else if (std::holds_alternative<LeavingMessage>(message)) {
    if (!stop_requested_ && WaitsFor(from)) return SetAway(now, from, "was stopped");
    Fail(now, stop_requested_ ? Stopped() : Unavailable("{} was stopped", from.Name()));
  } else {
    Fail(now, Internal("{} sends {}, which only a scheduler does", from.Name(), NameOf(message)));
  }
}

void JobState::TakeDataReady(TimePoint now, const Member& from, DataReadyMessage data) {
  if (from.role() != Role::kWorker) return;
  if (!data_.empty()) {
    const auto& [first, its] = *data_.begin();
    const std::string difference = DifferenceOf(its, data);
    if (!difference.empty()) {
      return Fail(now, WithHint(Malformed("{} and {} read different data: {}",
                                          membership_.Find(first)->Name(), from.Name(), difference),
                                "give every worker the same files"));
    }
  }
  data_.emplace(from.id, std::move(data));
}

// Whatever can happen now, happens.
void JobState::Advance(TimePoint now) {
  if (phase_ == JobPhase::kGathering && membership_.complete()) phase_ = JobPhase::kReading;
  if (phase_ == JobPhase::kReading && data_.size() == options_.job.cluster.workers) MakeStart(now);
  if (phase_ == JobPhase::kStarting && ready_.size() == membership_.members().size()) {
    phase_ = JobPhase::kRunning;
    pace_ = {now, 0, 0};
    AddEvent(now, "started", {});
    LogInfo("job.running", {{"processes", membership_.members().size()}});
    BeginCourse();
    if (course_.has_value()) {
      first_step_ = course_->state().step;
      trained_before_ = course_->state().train_seconds;
    }
  }
  while (phase_ == JobPhase::kRunning) {
    std::optional<OrderBoard::Completed> done = board_.TakeCompleted();
    if (!done.has_value()) break;
    const Status status = Complete(now, *std::move(done));
    if (!status.ok()) Fail(now, status);
  }
  if (phase_ == JobPhase::kRunning) HandOut(now);
}

void JobState::MakeStart(TimePoint now) {
  const DataReadyMessage& data = data_.begin()->second;
  if (options_.goal == Goal::kTrain && data.train_rows == 0) {
    return Fail(now, WithHint(Invalid("there is no training data"), "data.train names the files"));
  }
  const uint64_t saved_rows = options_.checkpoint ? options_.checkpoint->manifest.train_rows : 0;
  if (options_.goal == Goal::kTrain && saved_rows != 0 && saved_rows != data.train_rows) {
    return Fail(now, WithHint(Invalid("the checkpoint is of a job on {} training samples; there "
                                      "are {} now, so its place in them is not known",
                                      saved_rows, data.train_rows),
                              "give it the same files, or start anew with --resume never"));
  }
  const bool decides = options_.job.optimizer.plateau || options_.job.train.early_stop;
  if (options_.goal == Goal::kTrain && decides && data.valid_rows == 0) {
    return Fail(now, WithHint(Invalid("the plateau schedule and early_stop need validation data"),
                              "data.valid names the files"));
  }
  if (options_.goal == Goal::kEvaluate && data.test_rows + data.valid_rows == 0) {
    return Fail(now, WithHint(Invalid("there is neither test nor validation data"),
                              "data.test names the files"));
  }
  PlanInput input{data.columns, slices_, {}, membership_.OnFullestMachine()};
  for (const Member* worker : membership_.OfRole(Role::kWorker)) {
    if (const DeviceInfo* device = worker->accelerator()) input.accelerators.push_back(*device);
  }
  Result<MadePlan> plan = surroundings_.MakePlan(input);
  if (!plan.ok()) return Fail(now, plan.status());
  for (auto& [kind, why] : plan->notes) AddEvent(now, std::move(kind), {{"why", std::move(why)}});
  places_ = PlacesText(plan->plan.graph);
  predicted_step_ = plan->step_seconds;
  model_ = std::move(plan->model);
  plan_explanation_ = std::move(plan->explanation);
  std::vector<ServerInfo> servers;
  for (const Member* server : membership_.OfRole(Role::kServer)) {
    servers.push_back({server->id, server->join.endpoints});
  }
  map_ = MakeShardMap(MapVersion(1), options_.job.cluster.shards, std::move(servers));
  StartMessage start{generation_, slices_, map_, Ids(false), Encode(plan->plan)};
  for (const TableUse& table : plan->plan.graph.tables) {
    if (table.store != kNone) start.tables_on_worker.push_back(table.id);
  }
  for (const Member* worker : membership_.OfRole(Role::kWorker)) Send(*worker, start);
  start.plan.clear();
  for (const Member* server : membership_.OfRole(Role::kServer)) Send(*server, start);
  start_ = std::move(start);
  plan_ = std::move(plan->plan);
  phase_ = JobPhase::kStarting;
}

std::optional<JobResult::PlanCheck> JobState::plan_check() const {
  if (!course_.has_value() || course_->state().step <= first_step_) return std::nullopt;
  const CourseState& state = course_->state();
  return JobResult::PlanCheck{predicted_step_, (state.train_seconds - trained_before_) /
                                                   static_cast<double>(state.step - first_step_)};
}

void JobState::CheckStartTime(TimePoint now) {
  if (phase_ >= JobPhase::kRunning || now - begin_ <= options_.job.cluster.start_timeout) return;
  const double waited = SecondsBetween(begin_, now);
  if (phase_ == JobPhase::kGathering) {
    return Fail(
        now, WithHint(Timeout("after {:.0f} s only {} have joined", waited, membership_.Present()),
                      "start the others, or raise cluster.start_timeout"));
  }
  for (const Member& member : membership_.members()) {
    if (phase_ == JobPhase::kStarting && ready_.contains(member.id)) continue;
    if (phase_ == JobPhase::kReading &&
        (member.role() != Role::kWorker || data_.contains(member.id))) {
      continue;
    }
    return Fail(now, WithHint(Timeout("after {:.0f} s {} {}", waited, member.Name(),
                                      phase_ == JobPhase::kReading ? "is still reading its data"
                                                                   : "has not started"),
                              "see its log, or raise cluster.start_timeout"));
  }
}

void JobState::Tick(TimePoint now) {
  if (phase_ == JobPhase::kEnded) return;
  CheckLeases(now);
  SettleClaims(now);
  CheckStartTime(now);
  Advance(now);
}

void JobState::RequestStop(TimePoint now) {
  if (stop_requested_ || phase_ == JobPhase::kEnded) return;
  stop_requested_ = true;
  LogInfo("job.stopping", {{"phase", NameOf(phase_)}});
  if (course_.has_value()) {
    course_->RequestStop();
    Advance(now);
  } else {
    End(now, Stopped());
  }
}

void JobState::Fail(TimePoint now, Status why) {
  DT_CHECK(!why.ok());
  End(now, std::move(why));
}

void JobState::End(TimePoint now, Status outcome) {
  if (phase_ == JobPhase::kEnded) return;
  phase_ = JobPhase::kEnded;
  outcome_ = std::move(outcome);
  const StopMessage stop{outcome_.code(), ProblemOf(outcome_)};
  for (const Member& member : membership_.members()) Send(member, stop);
  for (const Claimant& claimant : std::exchange(claimants_, {})) {
    Refuse(now, claimant.join.incarnation, claimant.join, Unavailable("the job has ended"));
  }
  AddEvent(now, "ended", {{"status", std::string(outcome_.ok() ? "completed" : ToText(outcome_))}});
}

}  // namespace dt::scheduler
