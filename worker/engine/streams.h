// The threads that carry out a pass: one for each stream, which runs its subgraphs in order, each
// as soon as those it waits for have ended. One pass at a time.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "common/metrics/timeline.h"
#include "common/runtime/bounded_queue.h"
#include "worker/engine/node_runner.h"
#include "worker/engine/progress.h"

namespace dt::worker {

class Streams {
 public:
  struct Options {
    const Plan& plan;
    TaskPool& pool;
    Accelerator* accelerator = nullptr;  // Needed by plans with other streams than kCpu.
    Timeline* timeline = nullptr;        // Records each node, if it wants the step.
    // Gives a node its views; on the stream's thread, right before the node runs.
    std::function<PreparedNode&(NodeIndex)> prepare;
  };
  // Errors: those of MakeNodeRunner.
  static Result<std::unique_ptr<Streams>> Create(Options options);
  explicit Streams(Options options);
  ~Streams();

  // Starts the subgraphs of one phase; returns at once. Communication has ended already. `pass`
  // outlives the run. REQUIRES: the pass before has ended (Wait).
  // `slice` is for the timeline.
  void Start(const std::vector<Subgraph>& pass, Phase phase, const RunInfo& run,
             SliceIndex slice = kNoSlice);
  void GiveRows() { progress_.GiveRows(); }
  // The train thread. Errors: what stopped a stream; Timeout.
  Status WaitFor(uint32_t subgraph);
  // For all of the pass; nothing to wait for before the first.
  Status Wait();

 private:
  struct Thread {
    std::unique_ptr<NodeRunner> runner;
    BoundedQueue<uint64_t> begins{1};  // Numbers of passes.
    std::jthread thread;               // Last.
  };
  Status Open();
  void Work(Stream stream, std::stop_token stop);
  Status RunOwn(Stream stream);
  Status RunSubgraph(uint32_t index, NodeRunner& runner);
  Status AwaitOthers(const Subgraph& subgraph, NodeRunner& runner);

  const Options options_;
  Progress progress_;
  std::array<std::unique_ptr<Thread>, kStreams> threads_;  // Null: the plan does not need it.
  std::vector<std::unique_ptr<DeviceEvent>> events_;       // By subgraph of the longer pass.
  uint64_t passes_ = 0;

  // Of the pass at hand; written while no stream runs.
  const std::vector<Subgraph>* pass_ = nullptr;
  Phase phase_ = Phase::kSlice;
  RunInfo run_;
  SliceIndex slice_ = kNoSlice;
};

}  // namespace dt::worker
