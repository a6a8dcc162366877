// What befalls a job.
#include "test/sim/stories/story.h"

namespace dt::sim {
namespace {

constexpr Duration kBrokersAwayMax = seconds(10);
constexpr Duration kPauseMax = seconds(2), kCutMax = seconds(2), kFullMax = seconds(4);
constexpr Duration kAwayMax = seconds(4);
constexpr Duration kApart = seconds(90);
constexpr Duration kNoticedWithin = seconds(8);  // A server that hangs, or that nobody reaches.

}  // namespace

void Story::Note(const std::string& what) {
  const double at = SecondsBetween(TimePoint() + seconds(1000), cluster_->world().Now());
  text_ += fmt::format("  {:.3f} s: {}\n", at, what);
}

void Story::Befall(const Misfortunes& misfortunes) {
  World& world = cluster_->world();
  if (world.Chance(misfortunes.pause)) {
    const Node node = AnyNode();
    const Duration duration = world.UpTo(kPauseMax);
    Note(fmt::format("node {} stands still for {} ms", node, duration / milliseconds(1)));
    if (Process* const process = cluster_->process(node)) process->Pause(duration);
    ++tally_.pauses;
  }
  if (world.Chance(misfortunes.cut)) {
    const Node from = AnyNode(), to = AnyNode();
    const Duration duration = world.UpTo(kCutMax);
    Note(fmt::format("nothing from {} to {} for {} ms", from, to, duration / milliseconds(1)));
    cluster_->wires().Cut(from, to, world.Now() + duration);
    ++tally_.cuts;
  }
  if (world.Chance(misfortunes.full_disk)) {
    const auto index = static_cast<uint32_t>(world.Below(job_.cluster.servers));
    const Duration duration = world.UpTo(kFullMax);
    Note(fmt::format("the disk of server {} is full for {} ms", index + 1,
                     duration / milliseconds(1)));
    if (SimServer* const server = cluster_->server(index)) server->FillDisk(world.Now() + duration);
    ++tally_.full_disks;
  }
  if (misfortunes.stop_brokers > 0 && world.Chance(misfortunes.stop_brokers)) {
    const Duration duration = world.UpTo(kBrokersAwayMax);
    Note(fmt::format("the brokers are away for {} ms", duration / milliseconds(1)));
    cluster_->topic()->StopBrokers(duration);
    ++tally_.outages;
  }
  const auto& training = cluster_->scheduler().job().record().training;
  const Step step = training.has_value() ? training->schedule.state.step : 0;
  if (step < misfortunes.from_step) return;
  ChangeServers(misfortunes);
  ChangeWorkers(misfortunes);
  if (tally_.kills + tally_.stops >= misfortunes.kills_max) return;
  const auto to_server = [&](double chance, void (Story::*befalls)(uint32_t index)) {
    if (!world.Chance(chance)) return;
    const auto index = static_cast<uint32_t>(world.Below(cluster_->servers()));
    const SimServer* const server = cluster_->server(index);
    if (server != nullptr && server->alive()) (this->*befalls)(index);
  };
  to_server(misfortunes.kill_server, &Story::KillServer);
  to_server(misfortunes.restart_server, &Story::RestartServer);
  to_server(misfortunes.hang_server, &Story::HangServer);
  to_server(misfortunes.isolate_server, &Story::IsolateServer);
  to_server(misfortunes.fail_server, &Story::FailServer);
  if (world.Chance(misfortunes.lose_worker)) LoseWorker(misfortunes);
  if (misfortunes.part_workers > 0 && world.Chance(misfortunes.part_workers)) PartWorkers();
  if (misfortunes.hang_worker > 0 && world.Chance(misfortunes.hang_worker)) HangWorker();
  if (world.Chance(misfortunes.kill_scheduler)) KillScheduler();
  if (world.Chance(misfortunes.kill)) {
    const Node node = AnyNode();
    Note(fmt::format("node {} is killed", node));
    if (Process* const process = cluster_->process(node)) process->Kill();
    ++tally_.kills;
  }
  // No draw where it cannot be: others' stories stay as they are.
  if (misfortunes.kill_and_start > 0 && world.Chance(misfortunes.kill_and_start)) KillAndStart();
  if (world.Chance(misfortunes.stop) && cluster_->scheduler().alive()) {
    Note("the user stops the job");
    cluster_->scheduler().RequestStop();
    ++tally_.stops;
  }
}

void Story::ChangeServers(const Misfortunes& misfortunes) {
  World& world = cluster_->world();
  if (tally_.changes >= misfortunes.changes_max) return;
  if (world.Chance(misfortunes.add_server)) {
    cluster_->AddServer();
    Note("another server is started");
    ++tally_.changes;
  }
  if (world.Chance(misfortunes.drain_server) && cluster_->scheduler().alive()) {
    const Node node = AnyNode();
    if (!cluster_->scheduler().Drain(ProcessId(node))) return;
    Note(fmt::format("server {} is drained", node));
    ++tally_.changes;
  }
}

void Story::ChangeWorkers(const Misfortunes& misfortunes) {
  World& world = cluster_->world();
  if (tally_.changes >= misfortunes.changes_max) return;
  if (world.Chance(misfortunes.add_worker)) {
    cluster_->AddWorker();
    Note("another worker is started");
    ++tally_.changes;
  }
  const auto count = static_cast<uint32_t>(WorkersThatStay().size());
  if (world.Chance(misfortunes.release_worker) && cluster_->scheduler().alive() && count > 1) {
    if (!cluster_->scheduler().Scale(Role::kWorker, count - 1)) return;
    Note(fmt::format("the user wants {} workers", count - 1));
    ++tally_.changes;
  }
}

// By the scheduler's record: workers with the values that are neither lost nor asked to leave.
std::vector<uint32_t> Story::WorkersThatStay() const {
  std::vector<uint32_t> stay;
  const scheduler::Job& job = cluster_->scheduler().job();
  for (uint32_t w = 0; w < cluster_->workers(); ++w) {
    const SimWorker* const worker = cluster_->worker(w);
    if (worker == nullptr || !worker->alive() || lost_.contains(worker)) continue;
    const scheduler::Member* const member =
        job.membership().Find(Incarnation(worker->incarnation()));
    if (member == nullptr || member->draining) continue;
    const auto& [number, workers, forming, missing, reports, step, newcomers] = job.record().views;
    const auto among = [&](const auto& ids) { return std::ranges::count(ids, member->id) > 0; };
    if (among(workers) && !among(newcomers) && !forming) stay.push_back(w);
  }
  return stay;
}

void Story::LoseWorker(const Misfortunes& misfortunes) {
  World& world = cluster_->world();
  std::vector<uint32_t> alive;
  const bool changes = misfortunes.add_worker + misfortunes.worker_returns > 0;
  if (changes) {
    alive = WorkersThatStay();
  } else {
    for (uint32_t w = 0; w < cluster_->workers(); ++w) {
      const SimWorker* const worker = cluster_->worker(w);
      if (worker != nullptr && worker->alive() && !lost_.contains(worker)) alive.push_back(w);
    }
  }
  if (alive.size() < 2) return;
  const uint32_t index = alive[world.Below(alive.size())];
  SimWorker* const worker = cluster_->worker(index);
  lost_.insert(worker);
  ++tally_.kills;
  if (world.Chance(0.3)) {
    Note(fmt::format("worker {} stands still for two leases", index + 1));
    worker->Pause(2 * job_.cluster.lease);
  } else {
    Note(fmt::format("worker {} is killed", index + 1));
    worker->Kill();
  }
  if (!world.Chance(misfortunes.worker_returns)) return;
  const Duration away = 2 * job_.cluster.lease + world.UpTo(kAwayMax);
  world.After(away, [this, index, worker, restarts = tally_.restarts] {
    if (restarts != tally_.restarts || cluster_->worker(index) != worker || worker->alive()) return;
    cluster_->StartWorker(index);
    Note(fmt::format("worker {} is started again", index + 1));
  });
}

void Story::PartWorkers() {
  World& world = cluster_->world();
  const std::vector<uint32_t> stay = WorkersThatStay();
  if (stay.size() < 2 || world.Now() < apart_until_) return;
  const uint64_t one = world.Below(stay.size());
  const uint64_t other = (one + 1 + world.Below(stay.size() - 1)) % stay.size();
  const Node a = cluster_->worker(stay[one])->node(), b = cluster_->worker(stay[other])->node();
  Note(fmt::format("workers {} and {} do not reach each other", a, b));
  apart_until_ = world.Now() + kApart;
  cluster_->wires().Cut(a, b, apart_until_);
  cluster_->wires().Cut(b, a, apart_until_);
  ++tally_.kills;
}

void Story::HangWorker() {
  const std::vector<uint32_t> stay = WorkersThatStay();
  if (stay.size() < 2) return;
  const uint32_t index = stay[cluster_->world().Below(stay.size())];
  Note(fmt::format("worker {} hangs", index + 1));
  lost_.insert(cluster_->worker(index));
  cluster_->worker(index)->Hang();
  ++tally_.kills;
}

void Story::KillServer(uint32_t index) {
  World& world = cluster_->world();
  SimServer* const server = cluster_->server(index);
  const bool logs = job_.checkpoint.durability == Durability::kLog;
  const bool in_write = logs && world.Chance(0.5);
  Note(fmt::format("server {} is killed{}", index + 1, in_write ? " in its next write" : ""));
  if (in_write) {
    server->KillInNextWrite();
  } else {
    server->Kill();
  }
  ++tally_.kills;
  // It may write nothing any more; then it is killed without that.
  world.After(world.UpTo(kAwayMax), [this, index, server, restarts = tally_.restarts] {
    if (restarts != tally_.restarts || cluster_->server(index) != server) return;
    server->Kill();
    cluster_->StartServer(index);
    Note(fmt::format("server {} is started again", index + 1));
  });
}

void Story::RestartServer(uint32_t index) {
  SimServer* const server = cluster_->server(index);
  Note(fmt::format("server {} is restarted at once", index + 1));
  restarted_[Incarnation(server->incarnation())] = cluster_->world().Now();
  server->Kill();
  cluster_->StartServer(index);
  ++tally_.kills;
}

// Its heartbeats go on. When the job has gone on without it, another process takes its place.
void Story::HangServer(uint32_t index) {
  SimServer* const server = cluster_->server(index);
  if (cluster_->scheduler().job().phase() != scheduler::JobPhase::kRunning) return;
  const uint64_t executor = cluster_->world().Below(job_.cluster.server.executors);
  Note(fmt::format("executor {} of server {} hangs", executor, index + 1));
  server->HangExecutor(static_cast<uint32_t>(executor));
  ++tally_.kills;
  StartInItsPlace(index, server);
}

// The scheduler hears it, and it hears the scheduler.
void Story::IsolateServer(uint32_t index) {
  const World& world = cluster_->world();
  const SimServer* const server = cluster_->server(index);
  Note(fmt::format("server {} reaches nobody but the scheduler", index + 1));
  for (Node other = 1; other < cluster_->nodes(); ++other) {
    cluster_->wires().Cut(server->node(), other, world.Now() + kNoticedWithin);
    cluster_->wires().Cut(other, server->node(), world.Now() + kNoticedWithin);
  }
  ++tally_.kills;
  StartInItsPlace(index, server);
}

// When it has answered an order to save, which others have not.
void Story::FailServer(uint32_t index) {
  SimServer* const server = cluster_->server(index);
  const auto answered = [&] {
    const scheduler::JobRecord& job = cluster_->scheduler().job().record();
    if (job.orders.out.empty() || job.phase != scheduler::JobPhase::kRunning) return false;
    const scheduler::OrdersOut::Out& next = job.orders.out.front();
    const auto self = std::ranges::find(job.members, Incarnation(server->incarnation()),
                                        &scheduler::Member::incarnation);
    return std::holds_alternative<SaveOrder>(next.order.what) && self != job.members.end() &&
           next.outcomes.contains(self->id);
  };
  if (!cluster_->RunUntil(seconds(1), answered) || !server->alive()) return;
  Note(fmt::format("server {} fails", index + 1));
  server->Fail(Unavailable("the disk is full"));
  ++tally_.kills;
  StartInItsPlace(index, server);
}

// When the job has gone on without a server.
void Story::StartInItsPlace(uint32_t index, const SimServer* former) {
  cluster_->world().After(kNoticedWithin, [this, index, former, restarts = tally_.restarts] {
    if (restarts != tally_.restarts || cluster_->server(index) != former) return;
    if (former->alive()) return;  // There was no other with its shards.
    cluster_->StartServer(index);
    Note(fmt::format("server {} is started again", index + 1));
  });
}

// One process, or as many as chance wants: all of them, now and then.
void Story::KillAndStart() {
  World& world = cluster_->world();
  const uint64_t share = world.Below(4);
  const Node chosen = AnyNode();
  for (Node node = 0; node < cluster_->nodes(); ++node) {
    Process* const process = cluster_->process(node);
    if (process == nullptr || !process->alive()) continue;
    if (node != chosen && world.Below(4) >= share) continue;
    Note(fmt::format("node {} is killed", node));
    process->Kill();
  }
  ++tally_.kills;
}

// As a supervisor does: starts each process again that has ended before the job.
void Story::Supervise() {
  World& world = cluster_->world();
  if (cluster_->scheduler().job().phase() == scheduler::JobPhase::kEnded) return;
  for (Node node = 0; node < cluster_->nodes(); ++node) {
    const Process* const process = cluster_->process(node);
    if (process == nullptr || process->alive() || !supervised_.insert(process).second) continue;
    world.After(world.UpTo(kAwayMax), [this, node, process, restarts = tally_.restarts] {
      if (restarts != tally_.restarts || cluster_->process(node) != process) return;
      cluster_->StartNode(node);
      Note(fmt::format("node {} is started again", node));
    });
  }
}

void Story::KillScheduler() {
  World& world = cluster_->world();
  SimScheduler& scheduler = cluster_->scheduler();
  if (!scheduler.alive()) return;
  const uint64_t instant = world.Below(4);
  constexpr std::string_view kInstants[] = {"", "", " in its next sending", " in its next commit"};
  Note(fmt::format("the scheduler is killed{}", kInstants[instant]));
  if (instant < 2) scheduler.Kill();
  if (instant == 2) scheduler.KillInNextSending();
  if (instant == 3) scheduler.KillInNextCommit();
  ++tally_.kills;
  world.After(world.UpTo(kAwayMax), [this, &scheduler, restarts = tally_.restarts] {
    if (restarts != tally_.restarts || &cluster_->scheduler() != &scheduler) return;
    scheduler.Kill();  // It may have had nothing to send or to commit.
    if (!scheduler.killed()) return;
    cluster_->RestartScheduler();
    Note("the scheduler is started again");
    ++tally_.successions;
  });
}

}  // namespace dt::sim
