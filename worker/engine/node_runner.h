// Runs the nodes of one stream: kernels on the processor or the accelerator, or copies between
// them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/device/accelerator.h"
#include "common/graph/graph_index.h"
#include "common/layout/sample_part.h"
#include "common/metrics/timeline.h"
#include "common/plan/plan.h"
#include "common/runtime/task_pool.h"
#include "common/runtime/work_span.h"
#include "ops/kernel.h"
#include "worker/exchange/team_link.h"

namespace dt::worker {

// One node, ready to run: its views are set before each pass, and point to its inputs and outputs.
struct PreparedNode {
  Kernel kernel = nullptr;
  WorkKind* work = &kUnnamedWork;
  std::vector<TensorView> inputs, outputs;
  SamplePart sample_part;     // The part of the samples that the node reads; empty: all.
  uint64_t first_sample = 0;  // Position of its first sample in the slice.
  double flops = 0;           // For nodes on the accelerator, with this many samples.
  int64_t samples = -1;
  uint64_t runs = 0;
  Duration time{};  // For nodes on a CUDA card, the time to launch them.
};

// What all passes have in common. All of it outlives the runners.
struct RunnerContext {
  const Plan& plan;
  const GraphIndex& index;  // Made for the plan's graph.
  TaskPool& pool;
  TeamLink& team;
  Accelerator* accelerator = nullptr;  // Needed by streams other than kCpu.
  Timeline* timeline = nullptr;        // Records each node, if it wants the step.
  bool overlap = true;                 // False: a subgraph begins when the one before has ended.
  bool comm_thread = true;             // False: whoever waits for a turn communicates.
  size_t lanes = 1;
  // Sets a node's views in a lane and returns it; called on the stream's thread, right before the
  // node runs.
  std::function<PreparedNode&(size_t lane, NodeIndex)> prepare;
  // Runs a subgraph of Phase::kJoin; called on the thread of communication.
  std::function<Status(const Subgraph&)> join;
};

// The subgraphs of some phases, run once in the memory of a lane.
struct Pass {
  const std::vector<Subgraph>* subgraphs = nullptr;  // Plan::train or Plan::evaluate.
  Phases phases;
  size_t lane = 0;
  RunInfo run;
  SliceIndex slice = kNoSlice;  // For the timeline.
  // By symbol, from 1 on: the slice's true sizes, and those for which memory on an accelerator is
  // laid out (exact for B).
  std::span<const int64_t> sizes, extents;
};

// Runs one stream; only the stream's thread uses it.
class NodeRunner {
 public:
  virtual ~NodeRunner() = default;
  // Called before the stream's first subgraph of a pass. REQUIRES: all work of the pass before in
  // its lane has ended.
  virtual Status Begin(const Pass&) { return OkStatus(); }
  // Runs the subgraph's nodes in order, or gives them to an accelerator.
  virtual Status Run(const Subgraph& subgraph, const Pass& pass) = 0;
  // The event happens when all work given so far has ended; the stream goes on. For the processor
  // there is nothing to do.
  virtual Status Record(DeviceEvent&) { return OkStatus(); }
  // Work given from now on comes after the event.
  virtual Status WaitFor(DeviceEvent& event, Duration timeout) { return event.Wait(timeout); }
  // CUDA graphs made so far; none more in a steady state.
  virtual uint64_t graphs_made() const { return 0; }
};

// Errors: Unavailable, if there is no queue or no memory; NotYet or Invalid, if the card's kernels
// cannot run a node. `context` outlives the runner.
Result<std::unique_ptr<NodeRunner>> MakeNodeRunner(Stream stream, const RunnerContext& context);

// The timeline's track for a stream.
Track TrackOf(Stream stream);

}  // namespace dt::worker
