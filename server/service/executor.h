// One thread of a server: owns a socket and some shards, and nothing of it is touched by another
// thread. The server's main thread gives it commands through a queue and wakes it.
//
//   Waiting ──Begin──▶ Serving ──(Save | Load | Cut | Report)*──▶ end with the object
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/net/socket.h"
#include "common/runtime/bounded_queue.h"
#include "server/service/commands.h"
#include "server/service/data_frontend.h"
#include "server/service/holdings.h"

namespace dt::server {

// The rows of a save: written, or not.
struct SavedRows {
  Status status;
  std::vector<CheckpointFile> files;
};

struct ExecutorOptions {
  std::vector<WireTable> tables;  // Of the job's tables.
  Duration pull_patience = seconds(60);
  uint64_t memory_bytes_max = 0;        // Of all executors of the server; above it by a 20th and by
  uint64_t memory_slack = 256 << 20;    // this is too much.
  Duration log_patience = seconds(30);  // With a log that cannot be written.
  // Of all executors together; each adds what its own shards use.
  std::atomic<uint64_t>* memory_bytes = nullptr;
};

class Executor {
 public:
  Executor(ExecutorOptions options, std::unique_ptr<ServerSocket> socket);
  ~Executor();

  const std::string& endpoint() const { return endpoint_; }

  // The server's main thread: one command, then its answer.
  void Post(std::unique_ptr<ExecutorCommand> command);
  // Nothing within `patience`: ask again.
  std::optional<ExecutorAnswer> Await(Duration patience) { return answers_.Pop(patience); }
  // What a save came to; once.
  std::optional<SavedRows> TakeSaved() { return saved_.Pop(Duration::zero()); }
  // Why this executor can serve no more; once.
  std::optional<Status> TakeFailure() { return failures_.Pop(Duration::zero()); }

  // What the tables held within the last second or so, if that is news.
  std::optional<std::vector<TableReport>> TakeSizes() { return sizes_.Pop(Duration::zero()); }

  // Any thread. The least step that is not applied.
  Step clock() const { return clock_.load(std::memory_order_relaxed); }
  uint64_t log_bytes() const { return log_bytes_.load(std::memory_order_relaxed); }

 private:
  void Run(std::stop_token stop);
  void PassTime(TimePoint now);
  void WorkOnTier();
  void WorkOnCommand(TimePoint now);
  // Those that are there, or the first before the next deadline: one, or as many as share a write
  // to the log. False when the socket is of no use.
  bool TakeMessages();
  void CommitLog();
  void SendAll();
  void NoteProgress();
  void Fail(Status status);
  Duration Patience() const;

  const ExecutorOptions options_;
  const std::string endpoint_;

  // Touched by thread_ only.
  const std::unique_ptr<ServerSocket> socket_;
  Holdings held_;
  std::unique_ptr<ExecutorCommand> command_;  // Under way.
  std::optional<TimePoint> log_failing_since_;
  DataFrontend frontend_;
  std::vector<PeerMessage> outgoing_;
  uint64_t own_memory_bytes_ = 0;
  TimePoint time_passed_until_ = SystemClock().Now();
  TimePoint next_sizes_{};
  bool failed_ = false;

  // Between the threads.
  BoundedQueue<std::unique_ptr<ExecutorCommand>> commands_{4};
  BoundedQueue<ExecutorAnswer> answers_{4};
  BoundedQueue<SavedRows> saved_{4};
  BoundedQueue<Status> failures_{1};
  BoundedQueue<std::vector<TableReport>> sizes_{1};
  std::atomic<Step> clock_ = 0;
  std::atomic<uint64_t> log_bytes_ = 0;

  std::jthread thread_;  // Last: starts when the rest exists, ends before it goes.
};

}  // namespace dt::server
