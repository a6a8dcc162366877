// One thread of a server: an ExecutorCore with a socket and a clock. No other thread touches these;
// the server's main thread gives commands through a queue and wakes the executor.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/net/socket.h"
#include "common/runtime/bounded_queue.h"
#include "server/service/executor_core.h"

namespace dt::server {

class Executor {
 public:
  // `network` connects to other servers' executors; it outlives the executor.
  Executor(ExecutorOptions options, std::unique_ptr<ServerSocket> socket, Network& network);
  ~Executor();

  const std::string& endpoint() const { return endpoint_; }

  // For the server's main thread: posts a command, whose answer must be awaited before the next.
  void Post(std::unique_ptr<ExecutorCommand> command);
  // A newer map of the job; at any time.
  void SetMap(ShardMap map);
  // Nothing if there is no answer within `timeout`: ask again.
  std::optional<ExecutorAnswer> Await(Duration timeout) { return answers_.Pop(timeout); }
  // The result of a save; returned once.
  std::optional<SavedRows> TakeSaved() { return saved_.Pop(Duration::zero()); }
  // Why this executor can serve no more; returned once.
  std::optional<Status> TakeFailure() { return failures_.Pop(Duration::zero()); }
  // The sizes within the last second or so; nothing if there is no news.
  std::optional<ExecutorSizes> TakeSizes() { return sizes_.Pop(Duration::zero()); }

  // Shards that other servers have copies of now; told again and again.
  std::optional<std::vector<ShardCopies::Copied>> TakeCopied() {
    return copied_.Pop(Duration::zero());
  }
  // Any thread. The least step that is not applied.
  Step step() const { return step_.load(std::memory_order_relaxed); }
  uint64_t log_bytes() const { return log_bytes_.load(std::memory_order_relaxed); }
  // Any thread.
  ExecutorReport Report(TimePoint now) const;

 private:
  void Run(std::stop_token stop);
  // Takes messages that have arrived, or waits for the first one until the next turn: one message,
  // or as many as share a turn. False if the socket is of no use any more.
  bool TakeMessages();
  void SendAll();
  void SendLetters();
  void Publish();
  void Fail(const Status& status);

  const std::string endpoint_;

  // Touched by thread_ only.
  const std::unique_ptr<ServerSocket> socket_;
  Network& network_;
  std::map<std::string, std::unique_ptr<ClientSocket>> servers_;  // By endpoint.
  ExecutorCore core_;
  bool busy_ = false;  // True while a command is under way.
  bool failed_ = false;

  // Between the threads.
  BoundedQueue<std::unique_ptr<ExecutorCommand>> commands_{4};
  BoundedQueue<ShardMap> maps_{64};
  BoundedQueue<ExecutorAnswer> answers_{4};
  BoundedQueue<SavedRows> saved_{4};
  BoundedQueue<Status> failures_{1};
  BoundedQueue<ExecutorSizes> sizes_{1};
  BoundedQueue<std::vector<ShardCopies::Copied>> copied_{4};
  std::atomic<Step> step_ = 0;
  std::atomic<uint64_t> log_bytes_ = 0;
  std::atomic<TimePoint> turned_;  // The beginning of the last turn.

  // Declared last: starts when the rest exists, and ends before it is destroyed.
  std::jthread thread_;
};

}  // namespace dt::server
