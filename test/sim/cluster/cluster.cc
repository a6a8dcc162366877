#include "test/sim/cluster/cluster.h"

#include <algorithm>

#include <sched.h>

#include "common/base/check.h"
#include "server/log/server_dir.h"

namespace dt::sim {
namespace {

constexpr Duration kStartMax = milliseconds(500);

// The threads of a simulation take turns. On one processor that takes half the time: no other has
// to be woken for each turn.
void StayOnThisProcessor() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  static_cast<void>(sched_setaffinity(0, sizeof(here), &here));
}

}  // namespace

Cluster::Cluster(uint64_t seed, const JobConfig& job, const scheduler::MadePlan& plan)
    : job_(job), plan_(plan), world_(seed), wires_(world_), meshes_(world_, wires_) {
  StayOnThisProcessor();
  servers_.resize(job.cluster.servers);
  workers_.resize(job.cluster.workers);
}

// Workers come out of their waits before anything else goes.
Cluster::~Cluster() {
  for (const auto& worker : workers_) {
    if (worker != nullptr) worker->Kill();
  }
}

template <class T>
void Cluster::Replace(std::unique_ptr<T>& old, std::unique_ptr<T> fresh) {
  if (old != nullptr) {
    DT_CHECK(!old->alive());
    former_.push_back(std::move(old));
  }
  old = std::move(fresh);
}

void Cluster::Start(bool resume) {
  DT_CHECK(AllEnded());
  server::ServerDir::RemoveFormer(job_);
  ++starts_;
  resumed_ = resume;
  disk_.record.clear();
  RestartScheduler();
  for (auto& server : servers_) {
    if (server != nullptr) former_.push_back(std::move(server));
  }
  servers_.resize(job_.cluster.servers);
  for (uint32_t s = 0; s < servers_.size(); ++s) {
    world_.After(world_.UpTo(kStartMax), [this, s, start = starts_] {
      if (start == starts_) StartServer(s);
    });
  }
  for (auto& worker : workers_) {
    if (worker != nullptr) former_.push_back(std::move(worker));
  }
  workers_.resize(job_.cluster.workers);
  added_.clear();
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    world_.After(world_.UpTo(kStartMax), [this, w, start = starts_] {
      if (start == starts_) StartWorker(w);
    });
  }
}

void Cluster::RestartScheduler() {
  Replace(scheduler_,
          std::make_unique<SimScheduler>(
              world_, wires_, kScheduler,
              SimScheduler::Options{job_, plan_, Term(++terms_), disk_, resumed_, returns_}));
}

void Cluster::StartServer(uint32_t index) {
  const Node node = NodeOf(Role::kServer, index);
  Replace(servers_[index], std::make_unique<SimServer>(world_, wires_, node, NextIncarnation(),
                                                       SimServer::Options{job_, node}));
  LetJoinAgain(*servers_[index], [this, index] { StartServer(index); });
}

// The process itself does: it takes a moment.
void Cluster::LetJoinAgain(Process& process, std::function<void()> start) {
  process.SetJoinsAgain([this, &process, start = std::move(start), at = starts_] {
    world_.After(world_.UpTo(kStartMax), [this, &process, start, at] {
      if (at == starts_ && this->process(process.node()) == &process) start();
    });
  });
}

void Cluster::StartNode(Node node) {
  if (node == kScheduler) return RestartScheduler();
  for (uint32_t s = 0; s < servers(); ++s) {
    if (NodeOf(Role::kServer, s) == node) return StartServer(s);
  }
  for (uint32_t w = 0; w < workers(); ++w) {
    if (NodeOf(Role::kWorker, w) == node) return StartWorker(w);
  }
}

void Cluster::AddServer() {
  added_.emplace_back(Role::kServer, servers());
  servers_.emplace_back();
  StartServer(servers() - 1);
}

void Cluster::AddWorker() {
  added_.emplace_back(Role::kWorker, workers());
  workers_.emplace_back();
  StartWorker(workers() - 1);
}

Node Cluster::NodeOf(Role role, uint32_t index) const {
  const bool serves = role == Role::kServer;
  const uint32_t first = serves ? job_.cluster.servers : job_.cluster.workers;
  if (index < first) return 1 + index + (serves ? 0 : job_.cluster.servers);
  const auto at = std::ranges::find(added_, std::pair(role, index));
  return FirstAdded() + static_cast<Node>(at - added_.begin());
}

void Cluster::StartWorker(uint32_t index) {
  const Node node = NodeOf(Role::kWorker, index);
  Replace(workers_[index],
          std::make_unique<SimWorker>(
              world_, wires_, node, NextIncarnation(),
              SimWorker::Options{job_, meshes_, node, std::to_string(starts_) + "/", dies_,
                                 topic_.get()}));
  LetJoinAgain(*workers_[index], [this, index] { StartWorker(index); });
}

bool Cluster::RunUntil(Duration at_most, const std::function<bool()>& done) {
  const TimePoint end = world_.Now() + at_most;
  while (!done() && world_.Now() < end && world_.RunNext()) {
  }
  return done();
}

bool Cluster::AllEnded() const {
  const auto ended = [](const auto& process) { return process == nullptr || !process->alive(); };
  return ended(scheduler_) && std::ranges::all_of(servers_, ended) &&
         std::ranges::all_of(workers_, ended);
}

Process* Cluster::process(Node node) {
  if (node == kScheduler) return scheduler_.get();
  const uint32_t servers = job_.cluster.servers, workers = job_.cluster.workers;
  if (node <= servers) return servers_[node - 1].get();
  if (node <= servers + workers) return workers_[node - 1 - servers].get();
  const auto [role, index] = added_[node - FirstAdded()];
  if (role == Role::kWorker) return workers_[index].get();
  return servers_[index].get();
}

}  // namespace dt::sim
