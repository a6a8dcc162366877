// The threads that carry out a pass: one for each stream, which runs its subgraphs in order, each
// as soon as those it waits for have ended. One pass at a time.
#pragma once

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "common/runtime/bounded_queue.h"
#include "worker/engine/node_runner.h"
#include "worker/engine/progress.h"

namespace dt::worker {

class Streams {
 public:
  // Errors: those of MakeNodeRunner.
  static Result<std::unique_ptr<Streams>> Create(RunnerContext context);
  explicit Streams(RunnerContext context);
  ~Streams();

  // Starts a pass; returns at once. Subgraphs of communication count as ended. REQUIRES: the pass
  // before has ended (Wait).
  void Start(const Pass& pass);
  void GiveRows() { progress_.GiveRows(); }
  // Errors: what stopped a stream; Timeout.
  Status WaitFor(uint32_t subgraph);
  // Waits for all of the pass; does nothing before the first one.
  Status Wait();
  // After an error: ends the pass early, and returns when nothing of it runs any more.
  void Abandon();
  // To be called after Wait.
  uint64_t graphs_made() const;

 private:
  struct Thread {
    std::unique_ptr<NodeRunner> runner;
    BoundedQueue<uint64_t> begins{1};  // Numbers of passes.
    std::jthread thread;               // Declared last.
  };
  Status Open();
  void Work(Stream stream, std::stop_token stop);
  Status RunOwn(Stream stream);
  Status RunSubgraph(uint32_t index, NodeRunner& runner);
  Status AwaitOthers(uint32_t index, NodeRunner& runner);

  const RunnerContext context_;
  Progress progress_;
  std::array<std::unique_ptr<Thread>, kStreams> threads_;  // Null: the plan does not need it.
  std::vector<std::unique_ptr<DeviceEvent>> events_;       // One per subgraph of the longer pass.
  uint64_t passes_ = 0;

  Pass pass_;  // The current pass; written while no stream runs.
};

}  // namespace dt::worker
