// One thread of a server: owns a socket and some shards, and nothing of it is touched by another
// thread. The server's main thread gives it commands through a queue and wakes it.
//
//   Waiting ──Begin──▶ Serving ──(Save | Load | Report)*──▶ end with the object
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "common/net/socket.h"
#include "common/runtime/bounded_queue.h"
#include "common/wire/control.h"
#include "server/checkpoint/rows_file.h"
#include "server/log/log_place.h"
#include "server/log/log_replay.h"
#include "server/service/data_frontend.h"

namespace dt::server {

struct BeginCommand {
  ShardSetOptions shards;
  DiskTierOptions disk;              // `wake` is the executor's.
  std::optional<LogPlace> log = {};  // Nothing: none is kept.
};
// Waits until every step before `step` is applied: Timeout after `patience`, with what is missing.
// Answered when what is to be saved is fixed; TakeSaved tells when it is written.
struct SaveCommand {
  Step step = 0;
  SavePlace place;
  Duration patience{};
};
struct LoadCommand {
  std::string folder;
  Step step = 0;
  Generation generation;
};
// Every step that is held as a whole counts as complete: the job is over.
struct ReportCommand {};
// A checkpoint holds every step before `step`: the log forgets them.
struct CutCommand {
  Step step = 0;
};
using ExecutorCommand =
    std::variant<BeginCommand, SaveCommand, LoadCommand, ReportCommand, CutCommand>;

struct ExecutorAnswer {
  Status status;
  std::vector<CheckpointFile> files = {};  // TakeSaved.
  std::vector<TableReport> tables = {};    // Report.
  uint64_t first_segment = 0;              // Begin, Load, Cut: of the log; 0: there is none.
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
  void Post(ExecutorCommand command);
  // Nothing within `patience`: ask again.
  std::optional<ExecutorAnswer> Await(Duration patience) { return answers_.Pop(patience); }
  // What a save came to: its status and files; once.
  std::optional<ExecutorAnswer> TakeSaved() { return saved_.Pop(Duration::zero()); }
  // Why this executor can serve no more; once.
  std::optional<Status> TakeFailure() { return failures_.Pop(Duration::zero()); }

  // What the tables held within the last second or so, if that is news.
  std::optional<std::vector<TableReport>> TakeSizes() { return sizes_.Pop(Duration::zero()); }

  // Any thread. The least step that is not applied.
  Step clock() const { return clock_.load(std::memory_order_relaxed); }
  uint64_t log_bytes() const { return log_bytes_.load(std::memory_order_relaxed); }

 private:
  struct PendingSave {
    SaveCommand command;
    TimePoint deadline;
  };

  void Run(std::stop_token stop);
  void TakeCommands();
  void CarryOut(BeginCommand& command);
  ExecutorAnswer CarryOut(LoadCommand& command);
  void MakeTier();
  void WorkOnTier();
  void TrySave();
  void TryReport();
  std::optional<Status> Save(const PendingSave& save);
  void TakeSavedRows();
  ExecutorAnswer CarryOut(const CutCommand& command);
  Status BeginReplay(const LogPlace& place, Generation generation);
  void Replay();
  uint64_t FirstSegment() const;
  void Answer(ExecutorAnswer answer);
  // Those that are there, or the first before the next deadline: one, or as many as share a write
  // to the log. False when the socket is of no use.
  bool TakeMessages();
  void CommitLog();
  void SendAll();
  void NoteProgress();
  void PassTime();
  void Fail(Status status);
  Duration Patience() const;

  const ExecutorOptions options_;
  const std::string endpoint_;

  // Touched by thread_ only.
  const std::unique_ptr<ServerSocket> socket_;
  std::unique_ptr<ShardSet> shards_;
  DiskTierOptions disk_options_;
  std::unique_ptr<DiskTier> tier_;     // Of shards_.
  std::unique_ptr<PushLog> log_;       // Null: none is kept.
  std::unique_ptr<LogReplay> replay_;  // While the log is read back; then nothing is served.
  std::optional<TimePoint> log_failing_since_;
  DataFrontend frontend_;
  std::vector<PeerMessage> outgoing_;
  std::optional<PendingSave> save_;
  std::optional<TimePoint> report_by_;  // A report is asked for.
  uint64_t own_memory_bytes_ = 0;
  TimePoint time_passed_until_ = SystemClock().Now();
  TimePoint next_sizes_{};
  bool failed_ = false;

  // Between the threads.
  BoundedQueue<ExecutorCommand> commands_{4};
  BoundedQueue<ExecutorAnswer> answers_{4};
  BoundedQueue<ExecutorAnswer> saved_{4};
  BoundedQueue<Status> failures_{1};
  BoundedQueue<std::vector<TableReport>> sizes_{1};
  std::atomic<Step> clock_ = 0;
  std::atomic<uint64_t> log_bytes_ = 0;

  std::jthread thread_;  // Last: starts when the rest exists, ends before it goes.
};

}  // namespace dt::server
