// What an executor of a server does: handles requests, and carries out the server's commands in
// between. It has no thread, socket or clock: Executor has those, and simulations have their own.
//
//   Waiting ──Begin──▶ Serving ──(Save | Load | Cut | Report)*
//
// A turn: WorkOnDisk, BeginTurn, OnMessage for each request that has arrived, EndTurn.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "server/service/commands.h"
#include "server/service/data_frontend.h"
#include "server/service/executor_state.h"

namespace dt::server {

// What it tells now and then.
struct ExecutorSizes {
  std::vector<TableReport> tables;
  ChainReport chains;
  std::vector<ProcessId> unreachable;  // ChainLinks::silent
};

// The result of saving rows.
struct SavedRows {
  Status status;
  std::vector<CheckpointFile> files;
};

struct ExecutorOptions {
  std::vector<WireTable> tables;  // One for each table of the job.
  Duration pull_timeout = seconds(60);
  Duration lease = seconds(3);  // A server that does not answer for so long is reported.
  // Limit for the whole server, which fails when use exceeds it by 5 % plus memory_slack.
  uint64_t memory_bytes_max = 0;
  uint64_t memory_slack = 256 << 20;
  // Limit for the bytes per second of shards that are copied to other servers; 0: none.
  uint64_t move_rate = 0;
  Duration log_timeout = seconds(30);  // How long a log may fail to be written.
  // The memory used by all executors of the server; each adds that of its own shards.
  std::atomic<uint64_t>* memory_bytes = nullptr;
};

class ExecutorCore {
 public:
  // `wake` is called on the disk's threads when WorkOnDisk has something to do; it must not block.
  ExecutorCore(ExecutorOptions options, std::function<void()> wake);

  // REQUIRES: the command before it was answered.
  void Post(std::unique_ptr<ExecutorCommand> command);

  // Takes up a newer map of the job; at any time, also while a command is under way.
  void SetMap(TimePoint now, ShardMap map) { state_.SetMap(now, std::move(map)); }

  // Takes back what the disk's threads have done, and gives them more. A turn may go without it.
  void WorkOnDisk();
  void BeginTurn(TimePoint now);
  void OnMessage(TimePoint now, PeerMessage message);
  void EndTurn(TimePoint now);
  // If there is a log, or a chain, many requests share a turn, and so one write to it or one
  // message to the next member.
  bool shares_turns() const { return state_.log() != nullptr || state_.links().active(); }
  // How long the next turn may wait if no request comes.
  Duration UntilNextTurn(TimePoint now) const;

  // Answers to send; the caller clears them.
  std::vector<PeerMessage>& outgoing() { return outgoing_; }
  // Shards that other servers have copies of now; told again and again until the map says so.
  std::vector<ShardCopies::Copied> TakeCopied() { return state_.copies().TakeCopied(); }
  // Messages to other servers' executors; the caller clears them.
  std::vector<ChainLinks::Letter>& letters() { return letters_; }
  std::optional<ExecutorAnswer> TakeAnswer() { return std::exchange(answer_, std::nullopt); }
  // The result of a save; returned once.
  std::optional<SavedRows> TakeSaved() { return std::exchange(saved_, std::nullopt); }
  // Every now and then.
  std::optional<ExecutorSizes> TakeSizes() { return std::exchange(sizes_, std::nullopt); }
  // Why it can serve no more; OK while it can.
  const Status& failure() const { return failure_; }
  // The least step that is not applied.
  Step step() const { return step_; }
  uint64_t log_bytes() const { return log_bytes_; }
  // Any thread. What it does that may take long, for people; empty: nothing.
  const char* doing() const { return doing_.load(std::memory_order_relaxed); }
  ExecutorState& state() { return state_; }

 private:
  void PassTime(TimePoint now);
  void WorkOnCommand(TimePoint now);
  void WorkOnChains(TimePoint now);
  void CommitLog(TimePoint now);
  void NoteProgress();
  void Fail(Status status) { failure_.Update(std::move(status)); }
  void SetDoing(const char* what) { doing_.store(what, std::memory_order_relaxed); }

  const ExecutorOptions options_;
  ExecutorState state_;
  std::unique_ptr<ExecutorCommand> command_;  // The command under way; may be null.
  DataFrontend frontend_;
  std::vector<PeerMessage> outgoing_;
  std::vector<ChainLinks::Letter> letters_;
  bool disk_brought_ = false;  // In this turn, what requests or other servers wait for.
  std::optional<ExecutorAnswer> answer_;
  std::optional<SavedRows> saved_;
  std::optional<ExecutorSizes> sizes_;
  Status failure_;
  std::atomic<const char*> doing_ = "";
  Step step_ = 0;
  uint64_t log_bytes_ = 0;
  uint64_t own_memory_bytes_ = 0;
  std::optional<TimePoint> log_failing_since_, time_passed_until_;
  TimePoint next_sizes_{};
};

}  // namespace dt::server
