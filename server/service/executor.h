// One thread of a server: an ExecutorCore with a socket and a clock. Nothing of it is touched by
// another thread; the server's main thread gives it commands through a queue and wakes it.
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
#include "server/service/executor_core.h"

namespace dt::server {

class Executor {
 public:
  Executor(ExecutorOptions options, std::unique_ptr<ServerSocket> socket);
  ~Executor();

  const std::string& endpoint() const { return endpoint_; }

  // The server's main thread: one command, then its answer.
  void Post(std::unique_ptr<ExecutorCommand> command);
  // Nothing within `timeout`: ask again.
  std::optional<ExecutorAnswer> Await(Duration timeout) { return answers_.Pop(timeout); }
  // What a save came to; once.
  std::optional<SavedRows> TakeSaved() { return saved_.Pop(Duration::zero()); }
  // Why this executor can serve no more; once.
  std::optional<Status> TakeFailure() { return failures_.Pop(Duration::zero()); }
  // What the tables held within the last second or so, if that is news.
  std::optional<std::vector<TableReport>> TakeSizes() { return sizes_.Pop(Duration::zero()); }

  // Any thread. The least step that is not applied.
  Step step() const { return step_.load(std::memory_order_relaxed); }
  uint64_t log_bytes() const { return log_bytes_.load(std::memory_order_relaxed); }

 private:
  void Run(std::stop_token stop);
  // Those that are there, or the first before the next turn: one, or as many as share a write to
  // the log. False when the socket is of no use.
  bool TakeMessages();
  void SendAll();
  void Publish();
  void Fail(const Status& status);

  const std::string endpoint_;

  // Touched by thread_ only.
  const std::unique_ptr<ServerSocket> socket_;
  ExecutorCore core_;
  bool busy_ = false;  // A command is under way.
  bool failed_ = false;

  // Between the threads.
  BoundedQueue<std::unique_ptr<ExecutorCommand>> commands_{4};
  BoundedQueue<ExecutorAnswer> answers_{4};
  BoundedQueue<SavedRows> saved_{4};
  BoundedQueue<Status> failures_{1};
  BoundedQueue<std::vector<TableReport>> sizes_{1};
  std::atomic<Step> step_ = 0;
  std::atomic<uint64_t> log_bytes_ = 0;

  std::jthread thread_;  // Last: starts when the rest exists, ends before it goes.
};

}  // namespace dt::server
