// A worker process: the real RunWorker on a thread that waits in virtual time. Its connections to
// the scheduler, to servers and to other workers are those of the simulation.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/mutex.h"
#include "common/control/control_link.h"
#include "common/control/inbox.h"
#include "common/control/link_core.h"
#include "common/control/split_book.h"
#include "common/net/socket.h"
#include "test/sim/cluster/process.h"
#include "test/sim/cluster/sim_mesh.h"
#include "test/sim/cluster/sim_thread.h"
#include "test/sim/cluster/sim_topic.h"
#include "worker/service/worker_core.h"

namespace dt::sim {

class SimWorker : public Process, private ControlLink, private Network {
 public:
  struct Options {
    const JobConfig& job;
    MeshHub& meshes;
    uint32_t number = 1;
    std::string mesh_prefix = {};  // Of this start of the job.
    // Whether the worker of this number dies at a failpoint (common/base/failpoint.h).
    std::function<bool(uint32_t number, std::string_view place, uint64_t at)> dies = {};
    const SimTopic* topic = nullptr;  // Its messages, if the job trains on a stream.
  };
  SimWorker(World& world, Wires& wires, Node node, uint64_t incarnation, Options options);
  ~SimWorker() override;

  std::string Text() const override;
  Step step() const { return progress_.step; }  // Steps that it has done.
  // Its train thread stands still from its next slice on. Its link lives.
  void Hang() { hangs_ = true; }

  // How it has ended, if it has ended by itself.
  const std::optional<Status>& end() const { return end_; }

 private:
  class Socket;

  void OnKill() override;
  HeartbeatMessage Progress() const;
  void OnPacket(const Frames& message);
  void Tick();
  void TakeFromLink();
  void Flush();
  void Begin();
  // On the worker's thread: until then, or until something has arrived. Cancelled if it was killed.
  Status Wait(TimePoint until);
  void Wake() { thread_->Wake(); }
  // Until the result is destroyed, or it dies.
  std::shared_ptr<void> Repeat(Duration every, std::function<bool()> what);
  void RepeatWhile(std::weak_ptr<std::function<bool()>> what, Duration every);
  void Die();

  // The link to the scheduler.
  const WelcomeMessage& welcome() const override { return *core_.welcome(); }
  void Send(ControlMessage message) override;
  Result<ControlMessage> Receive(Duration timeout, Orders orders) override;
  void SetProgress(const HeartbeatMessage& progress) override { progress_ = progress; }
  void Put(const std::string& key, std::string value) override;
  Result<std::string> Get(const std::string& key, Duration timeout) override;
  Result<SplitMessage> NextSplit(uint64_t order, Duration timeout) override;
  bool ended() const override { return ended_; }
  Status end_status() const override;
  void Flush(Duration timeout) override;

  // The network to the servers.
  Result<std::unique_ptr<ServerSocket>> Bind(const std::string& endpoint) override;
  Result<std::unique_ptr<ClientSocket>> Connect(const std::string& endpoint) override;
  uint64_t bytes_sent() const override { return 0; }
  uint64_t bytes_received() const override { return 0; }

  const Options options_;
  const worker::WorkerOptions worker_;
  LatestView latest_;
  worker::WorkerActivity activity_;
  uint64_t sockets_ = 0;  // Opened so far.
  LinkCore core_;
  HeartbeatMessage progress_;
  bool hangs_ = false;
  Inbox incoming_;
  SplitBook splits_;
  std::atomic<bool> ended_ = false;  // Of the link; threads of the engine look at it, too.
  mutable Mutex mutex_;
  Status end_status_ DT_GUARDED_BY(mutex_);
  std::optional<Status> end_;
  std::unique_ptr<SimThread> thread_;  // Once it is welcome.
};

}  // namespace dt::sim
