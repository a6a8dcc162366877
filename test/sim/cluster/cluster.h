// A job of one scheduler, servers and workers in a simulation, and what its user does: starts it,
// starts it again where it had ended, kills processes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "test/sim/cluster/sim_mesh.h"
#include "test/sim/cluster/sim_scheduler.h"
#include "test/sim/cluster/sim_server.h"
#include "test/sim/cluster/sim_topic.h"
#include "test/sim/cluster/sim_worker.h"

namespace dt::sim {

class Cluster {
 public:
  // Nodes: the scheduler, then servers, then workers, then those that were added.
  static constexpr Node kScheduler = 0;

  // REQUIRES: job and plan outlive it.
  Cluster(uint64_t seed, const JobConfig& job, const scheduler::MadePlan& plan);
  ~Cluster();

  // Starts all processes, one after the other within half a second. `resume`: from the newest
  // complete checkpoint. REQUIRES: no process runs.
  void Start(bool resume);
  // The messages of a job that trains on a stream. Before the first start.
  void SetTopic(std::unique_ptr<SimTopic> topic) { topic_ = std::move(topic); }
  SimTopic* topic() { return topic_.get(); }
  // From now on the job may return to a checkpoint: its processes join again.
  void SetReturns() { returns_ = true; }
  // Another scheduler where the killed one was; it finds what that has left on the disk.
  void RestartScheduler();
  // A server, or worker, beyond those that the job begins with.
  void AddServer();
  void AddWorker();
  // Another process where that of a server was; it finds what that has left on the disk.
  void StartServer(uint32_t index);
  void StartWorker(uint32_t index);
  void StartNode(Node node);
  // Workers that start from now on die where this says so.
  void SetFailpoint(decltype(SimWorker::Options::dies) dies) { dies_ = std::move(dies); }
  // Runs until `done`, or for so long; what `done` has said last.
  bool RunUntil(Duration at_most, const std::function<bool()>& done);
  bool AllEnded() const;

  World& world() { return world_; }
  Wires& wires() { return wires_; }
  SimScheduler& scheduler() { return *scheduler_; }
  // Null before its first start. Those that were added are behind the job's own.
  SimServer* server(uint32_t index) { return servers_[index].get(); }
  SimWorker* worker(uint32_t index) { return workers_[index].get(); }
  uint32_t servers() const { return static_cast<uint32_t>(servers_.size()); }
  uint32_t workers() const { return static_cast<uint32_t>(workers_.size()); }
  // By node; null before its first start.
  Process* process(Node node);
  uint32_t nodes() const { return 1 + servers() + workers(); }
  const JobConfig& job() const { return job_; }

 private:
  Node FirstAdded() const { return 1 + job_.cluster.servers + job_.cluster.workers; }
  Node NodeOf(Role role, uint32_t index) const;
  uint64_t NextIncarnation() { return ++incarnations_; }
  void LetJoinAgain(Process& process, std::function<void()> start);
  template <class T>
  void Replace(std::unique_ptr<T>& old, std::unique_ptr<T> fresh);

  const JobConfig& job_;
  const scheduler::MadePlan& plan_;
  World world_;
  Wires wires_;
  MeshHub meshes_;
  std::unique_ptr<SimTopic> topic_;  // It is null if the job trains on files.
  uint64_t incarnations_ = 0, starts_ = 0, terms_ = 0;
  bool resumed_ = false, returns_ = false;
  SimScheduler::Disk disk_;
  std::unique_ptr<SimScheduler> scheduler_;
  std::vector<std::unique_ptr<SimServer>> servers_;
  std::vector<std::unique_ptr<SimWorker>> workers_;
  decltype(SimWorker::Options::dies) dies_;
  std::vector<std::pair<Role, uint32_t>> added_;  // Their indices.
  std::vector<std::unique_ptr<Process>> former_;  // Events may still name them.
};

}  // namespace dt::sim
