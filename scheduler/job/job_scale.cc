// Processes that join a running job, and those that leave it on request.
#include <algorithm>
#include <iterator>

#include "common/base/log.h"
#include "scheduler/job/job.h"

namespace dt::scheduler {

Status Job::CheckLateJoin(const JoinMessage& join) const {
  if (options_.goal == Goal::kEvaluate) return Invalid("the evaluation has begun");
  if (join.role == Role::kWorker) {
    // Where workers cannot change it is a spare, for a return to a checkpoint.
    if (!options_.may_return) DT_TRY_STATUS(views_.CheckChanges());
    return views_.CheckDevices(join, start_.plan());
  }
  DT_TRY_STATUS(CheckMoves());
  return moves_.CheckMemory(join);
}

// Time passes for a shard by records, which its members must have cut off their logs at the same
// place.
Status Job::CheckMoves() const {
  const auto by_time = [](const TableConfig& table) { return table.life.expiry_time > Duration(); };
  const bool logged = options_.job.checkpoint.durability == Durability::kLog;
  if (!logged || std::ranges::none_of(options_.job.model.tables, by_time)) return OkStatus();
  return WithHint(Invalid("the job keeps a log, and has rows that expire by time: its shards stay "
                          "where they are"),
                  "use expiry.steps instead of expiry.hours, or start all servers together");
}

// A shard changes its members only when no order is out during which that would matter.
void Job::MoveShards(TimePoint now) {
  if (!training_ || training_->cutting() || !CheckMoves().ok()) return;
  const bool fixed = std::ranges::any_of(record_.orders.out, [](const OrdersOut::Out& out) {
    return std::holds_alternative<LoadOrder>(out.order.what) ||
           std::holds_alternative<FinishOrder>(out.order.what);
  });
  if (fixed) return;
  moves_.Advance(now);
  if (!training_->saving()) ReleaseDrained(now);
}

void Job::ReleaseDrained(TimePoint now) {
  for (const ProcessId id : moves_.Drained()) {
    const Member& server = *members_.Find(id);
    record_.gone.push_back({server.incarnation(), server.Name(), true});
    DismissIfGone(server.incarnation());
    out_.AddEvent(now, "server_drained", {{"id", int64_t{id.value()}}});
    LogInfo("job.server_drained", {{"who", server.Name()}});
    recovery_.Forget(id);
    members_.Remove(id);
  }
  // They would have gone on as the servers that are released now.
  for (const JoinMessage& successor : recovery_.TakeSuccessorsOfNobody()) {
    record_.gone.push_back({successor.incarnation, "", true});
    DismissIfGone(successor.incarnation);
  }
}

Status Job::Drain(TimePoint now, ProcessId server) {
  if (phase() != JobPhase::kRunning || !training_) {
    return Invalid("the job is {}; a server can be drained while it trains", NameOf(phase()));
  }
  DT_TRY_STATUS(CheckMoves());
  DT_TRY_STATUS(moves_.Drain(now, server));
  Advance(now);
  return OkStatus();
}

// ------------------------------------------------------------ workers

void Job::OnDataReady(TimePoint now, const Member& from, DataReadyMessage data) {
  const bool again = from.read;
  const Status same = start_.OnDataReady(from, std::move(data));
  if (phase() < JobPhase::kStarting) {
    if (!same.ok()) Fail(now, same);
  } else if (!same.ok()) {
    LogWarn("job.refuses_worker", {{"why", ToText(same)}});
    Dismiss(from, std::string(MessageOf(same)));
  } else if (!again) {
    SendState(from);
  }
}

// They change only when no order is out that all must carry out together, but for training, which
// goes on where it is. Asynchronous workers change when no order is out at all: so their clocks are
// equal.
void Job::ChangeWorkers(TimePoint now) {
  if (!training_ || views_.forming() || stopping() || !orders_.only_trains()) return;
  if (training_->schedule().at_end() || !views_.CheckChanges().ok()) return;
  if (options_.job.train.asynchronous()) {
    // One that has not loaded what the job begins with would offer its own first values.
    if (options_.begins() && training_->schedule().state().step == 0) return;
    const bool waits = views_.WantsChange(now) && !orders_.empty();
    training_->SetPaused(waits);
    if (waits) return;
  }
  std::set<ProcessId> leave;
  for (const Member* worker : members_.OfRole(Role::kWorker)) {
    if (worker->draining && !training_->WritesFiles(worker->id)) leave.insert(worker->id);
  }
  // Somebody must have the values: the last one stays.
  const auto stays = [&](ProcessId id) { return !leave.contains(id); };
  if (std::ranges::none_of(record_.views.workers, stays)) leave.erase(record_.views.workers[0]);
  const auto in_view = [this](ProcessId id) { return views_.Has(id); };
  if (std::ranges::any_of(leave, in_view)) views_.Without(now, leave);
  for (const ProcessId id : leave) {
    const Member& worker = *members_.Find(id);
    out_.AddEvent(now, "worker_released", {{"id", int64_t{id.value()}}});
    LogInfo("job.worker_released", {{"who", worker.Name()}});
    training_->OnWorkerLost(id);
    Dismiss(worker, worker.Name(), true);
  }
  if (!views_.forming()) views_.Admit(now);
}

// ------------------------------------------------------------ scaling

Status Job::Scale(TimePoint now, Role role, uint32_t count) {
  if (phase() != JobPhase::kRunning || !training_) {
    return Invalid("the job is {}; it can be scaled while it trains", NameOf(phase()));
  }
  DT_TRY_STATUS(role == Role::kServer ? ScaleServers(now, count) : ScaleWorkers(count));
  uint32_t& wanted = role == Role::kServer ? record_.wanted.servers : record_.wanted.workers;
  if (std::exchange(wanted, count) != count) {
    out_.AddEvent(now, "scale", {{"role", std::string(NameOf(role))}, {"count", int64_t{count}}});
    LogInfo("job.scale", {{"role", NameOf(role)}, {"count", count}});
  }
  Advance(now);
  return OkStatus();
}

// The servers with the highest numbers drain.
Status Job::ScaleServers(TimePoint now, uint32_t count) {
  const uint32_t replicas = options_.job.cluster.replicas, shards = options_.job.cluster.shards;
  if (count < replicas || count > shards) {
    return Invalid(
        "the job needs at least {} server{}, for its replicas, and has use for {}, one "
        "for each shard",
        replicas, replicas == 1 ? "" : "s", shards);
  }
  DT_TRY_STATUS(CheckMoves());
  std::vector<ProcessId> stay;
  for (const Member* server : members_.OfRole(Role::kServer)) {
    if (!server->draining) stay.push_back(server->id);
  }
  for (; stay.size() > count; stay.pop_back()) DT_TRY_STATUS(moves_.Drain(now, stay.back()));
  return OkStatus();
}

// Spares leave first, then the last ranks, at the next step.
Status Job::ScaleWorkers(uint32_t count) {
  if (count == 0) {
    return WithHint(Invalid("a job needs at least one worker"),
                    "Ctrl-C, or SIGTERM to its scheduler, stops it");
  }
  DT_TRY_STATUS(views_.CheckChanges());
  const size_t places = views_.PlacesMax();
  if (count > places && options_.job.train.asynchronous()) {
    return Invalid("an asynchronous job has at most {} workers, not {}", places, count);
  }
  if (count > places) {
    return WithHint(Invalid("a step has {} slice{}: {} of {} workers would have nothing to do",
                            places, places == 1 ? "" : "s", count - places, count),
                    "train.slices, which a job keeps, bounds its workers");
  }
  std::vector<ProcessId> stay;
  for (const ProcessId id : record_.views.workers) {
    if (!members_.Find(id)->draining) stay.push_back(id);
  }
  std::ranges::copy(views_.Spares(), std::back_inserter(stay));
  for (; stay.size() > count; stay.pop_back()) members_.SetDraining(stay.back());
  return OkStatus();
}

}  // namespace dt::scheduler
