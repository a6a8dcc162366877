// What a server does on the scheduler's orders: gives its executors commands, and tells the
// scheduler the results. It has no thread, socket or clock: the server role has those, and
// simulations have their own.
//
//   Start ──Begin to all executors──▶ Ready      Finish ──Report──▶ done
//   Save ──Save──▶ done, and later, with the rows written, RowsWritten
//   Load ──Load──▶ done                          CheckpointCommitted, if there is a log, ──Cut──▶
//
// Messages are handled one at a time, in the order in which they came, but for a changed map: the
// orders before it may wait for it. Owned by one thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/config/job_config.h"
#include "common/control/messages.h"
#include "common/net/frame_pool.h"
#include "server/log/log_keeper.h"
#include "server/service/executor_core.h"

namespace dt::server {

class ServerCore {
 public:
  struct Options {
    const JobConfig& job;
    ProcessId self;  // The id that the scheduler gave the server.
    uint32_t executors = 1;
    FramePool* frames = nullptr;               // Makes the answers to pulls.
    LogKeeper* keeper = nullptr;               // Null: no log is kept.
    std::function<ProcessStats()> stats = {};  // Statistics of the process.
  };
  // REQUIRES: the job and the keeper outlive it.
  explicit ServerCore(Options options);

  void OnMessage(TimePoint now, ControlMessage message);
  void OnAnswer(TimePoint now, uint32_t executor, ExecutorAnswer answer);
  void OnSaved(TimePoint now, uint32_t executor, SavedRows saved);

  struct Command {
    uint32_t executor = 0;
    std::unique_ptr<ExecutorCommand> command;
  };
  // Commands for executors that have answered all earlier ones.
  std::vector<Command> TakeCommands() { return std::exchange(commands_, {}); }
  std::vector<ControlMessage> TakeOutgoing() { return std::exchange(outgoing_, {}); }
  // The first executor that owes an answer.
  std::optional<uint32_t> awaited() const;
  // The newest map of the job, for all executors at once, whatever commands are under way.
  std::optional<ShardMap> TakeMap() { return std::exchange(map_, std::nullopt); }

  bool saving() const { return saving_.has_value(); }
  bool started() const { return started_; }
  // Why the server cannot go on; OK while it can.
  const Status& failure() const { return failure_; }

 private:
  using Answers = std::vector<ExecutorAnswer>;
  using MakeCommand = std::function<std::unique_ptr<ExecutorCommand>(uint32_t executor)>;
  using Then = std::function<Status(TimePoint now, Answers answers)>;

  void Advance(TimePoint now);
  Status Handle(TimePoint now, ControlMessage message);
  void AskAll(const MakeCommand& command, Then then);
  Status Start(const StartMessage& start);
  Status BeginView(const View& view);
  Status CarryOut(TimePoint now, const OrderMessage& order);
  Status Save(TimePoint now, uint64_t order, const SaveOrder& save);
  Status Load(uint64_t order, const LoadOrder& load);
  Status Finish(uint64_t order);
  Status Cut(const CheckpointCommittedMessage& kept);
  Status EndSaving(TimePoint now);
  void Done(uint64_t order, OrderResult result);
  ShardSetOptions ShardsOf(const StartMessage& start, uint32_t executor) const;
  DiskTierOptions DiskOf() const;

  const Options options_;
  std::vector<TableSpec> tables_;
  std::deque<ControlMessage> inbox_;
  std::vector<Command> commands_;
  std::vector<ControlMessage> outgoing_;
  std::optional<ShardMap> map_;
  Status failure_;
  bool started_ = false;
  // A command to all executors, until the last of them has answered.
  struct Question {
    std::vector<std::optional<ExecutorAnswer>> answers;
    Then then;
  };
  std::optional<Question> question_;
  // A checkpoint whose rows are being written while requests go on.
  struct Saving {
    uint64_t order = 0;
    Step step = 0;
    std::string folder;  // This server's folder in the checkpoint.
    TimePoint begun{};
    uint32_t executors_left = 0;
    std::vector<CheckpointFile> files;
    Status status;
  };
  std::optional<Saving> saving_;
};

}  // namespace dt::server
