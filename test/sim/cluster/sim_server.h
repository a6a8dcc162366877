// A server process: the real ServerCore, executors, log and link to the scheduler.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/control/link_core.h"
#include "server/log/log_keeper.h"
#include "server/service/server_core.h"
#include "test/sim/cluster/process.h"

namespace dt::sim {

class SimServer : public Process {
 public:
  struct Options {
    const JobConfig& job;
    uint32_t number = 1;  // From 1; names its addresses, and its directory if it keeps a log.
  };
  SimServer(World& world, Wires& wires, Node node, uint64_t incarnation, Options options);
  ~SimServer() override;

  std::string Text() const override;

  // The disk takes no more bytes of the log until then.
  void FillDisk(TimePoint until) { full_until_ = until, room_left_ = world().Below(64); }
  // Killed in the midst of the next write to a log: what was to be written is there in part, and
  // nothing is answered. `lost_too`: bytes of earlier writes go as well, which no disk may do.
  void KillInNextWrite(uint64_t lost_too = 0) { dies_writing_ = true, lost_too_ = lost_too; }

  // Tells the scheduler, and ends once that is acknowledged.
  void Fail(const Status& why);
  // The executor does nothing any more; the process does not notice.
  void HangExecutor(uint32_t executor) { executors_[executor].hangs = true; }

  // What it holds; of a process that was killed, nothing.
  std::vector<server::ShardSet*> shard_sets() const;
  // "sim://<server>/<executor>".
  static std::string EndpointOf(uint32_t server, uint32_t executor);

 private:
  struct Executor {
    std::string endpoint;
    std::unique_ptr<server::ExecutorCore> core;
    bool turn_planned = false;
    bool busy = false;  // A command is under way.
    bool hangs = false;
    TimePoint turned{};
    std::optional<TimePoint> saves_until{};  // Its disk writes the rows of a checkpoint until then.
    std::vector<PeerMessage> arrived;
  };

  void OnKill() override;
  void OpenLog();
  void Listen();
  HeartbeatMessage Progress() const;
  void OnPacket(const Frames& message);
  void Tick();
  void TakeFromLink();
  void SendAll();
  void PlanTurn(uint32_t executor, Duration delay);
  void Turn(uint32_t executor);
  void WorkOnDisk(Executor& executor);
  void EndTurn(Executor& executor);
  void TearLog(const Executor& executor, uint64_t bytes_before);
  void TakeResults(uint32_t executor);
  void TellSaved(uint32_t executor, const server::SavedRows& rows);

  const Options options_;
  std::optional<server::LogKeeper> keeper_;
  std::atomic<uint64_t> memory_bytes_ = 0;
  std::vector<Executor> executors_;
  std::optional<LinkCore> link_;
  std::optional<server::ServerCore> core_;
  TimePoint full_until_{};
  uint64_t room_left_ = 0;  // Bytes of each segment that still fit then.
  bool dies_writing_ = false;
  uint64_t lost_too_ = 0;
  std::optional<TimePoint> failed_at_;
};

}  // namespace dt::sim
