// The threads of the engine: one for each stream, which runs the subgraphs of all turns, each as
// soon as those it waits for have ended. A lane has one turn at a time.
#pragma once

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "worker/engine/node_runner.h"
#include "worker/engine/turns.h"

namespace dt::worker {

class Streams {
 public:
  // Errors: those of MakeNodeRunner.
  static Result<std::unique_ptr<Streams>> Create(RunnerContext context);
  explicit Streams(RunnerContext context);
  ~Streams();

  // Starts a turn in a lane; returns at once. REQUIRES: the lane's turn before has ended (Wait).
  void Start(const Pass& pass);
  void GiveRows(size_t lane) { turns_.GiveRows(lane); }
  // Errors: what stopped a stream; Timeout.
  Status WaitFor(size_t lane, uint32_t subgraph);
  // Waits for all of the lane's turn; does nothing before the first one.
  Status Wait(size_t lane);
  // After an error: ends all turns early, and returns when nothing of them runs any more.
  void Abandon();
  // REQUIRES: all turns have ended.
  uint64_t graphs_made() const;

 private:
  struct Thread {
    std::unique_ptr<NodeRunner> runner;
    std::vector<uint64_t> begun;  // By lane: the turn that the runner knows.
    std::jthread thread;          // Declared last.
  };
  // Points in the work of devices: each subgraph of a lane has one, behind its own work.
  using Events = std::vector<std::unique_ptr<DeviceEvent>>;
  Status Open();
  void Work(Stream stream);
  void RunAndEnd(const Turns::Work& work, Thread& on);
  Status Run(const Turns::Work& work, Thread& on);

  const RunnerContext context_;
  Turns turns_;
  std::array<std::unique_ptr<Thread>, kStreams> threads_;  // Null: the plan does not need it.
  std::vector<Events> events_;                             // By lane, then by subgraph.
  std::vector<Pass> passes_;                               // By lane: its turn.
};

}  // namespace dt::worker
