// Runs the nodes of one stream: kernels on the processor or the accelerator, or copies between
// them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/device/accelerator.h"
#include "common/graph/graph_index.h"
#include "common/metrics/timeline.h"
#include "common/plan/plan.h"
#include "common/runtime/task_pool.h"
#include "ops/kernel.h"

namespace dt::worker {

// One node, ready to run: its views are set before each pass, and lie where its inputs and outputs
// lie.
struct PreparedNode {
  Kernel kernel = nullptr;
  std::vector<TensorView> inputs, outputs;
  std::vector<std::byte> scratch;
  double flops = 0;  // Of nodes on the accelerator, for so many samples.
  int64_t samples = -1;
  uint64_t runs = 0;
  Duration time{};  // Of nodes on a card: of giving them to it.
};

// What all passes have in common. What it names outlives the runners.
struct RunnerContext {
  const Plan& plan;
  const GraphIndex& index;  // Made for the plan's graph.
  TaskPool& pool;
  Accelerator* accelerator = nullptr;  // Needed by streams other than kCpu.
  Timeline* timeline = nullptr;        // Records each node, if it wants the step.
  bool overlap = true;                 // False: a subgraph begins when the one before has ended.
  // Gives a node its views; on the stream's thread, right before the node runs.
  std::function<PreparedNode&(NodeIndex)> prepare;
};

// The subgraphs of one phase, run once.
struct Pass {
  const std::vector<Subgraph>* subgraphs = nullptr;  // Plan::train or Plan::evaluate.
  Phase phase = Phase::kSlice;
  RunInfo run;
  SliceIndex slice = kNoSlice;  // For the timeline.
  // By symbol, 1 first: the slice's true sizes, and what memory on an accelerator is laid out for
  // (exact for B).
  std::span<const int64_t> sizes, extents;
};

// Of one stream; only its thread uses it.
class NodeRunner {
 public:
  virtual ~NodeRunner() = default;
  // Before the pass's first subgraph. REQUIRES: all work of the pass before has ended.
  virtual Status Begin(const Pass&) { return OkStatus(); }
  // The subgraph's nodes, in order: run, or given to an accelerator.
  virtual Status Run(const Subgraph& subgraph, const Pass& pass) = 0;
  // Work given so far has ended when the event has; the stream goes on. Nothing to do for the
  // processor.
  virtual Status Record(DeviceEvent&) { return OkStatus(); }
  // What is run from now on comes after the event.
  virtual Status WaitFor(DeviceEvent& event, Duration timeout) { return event.Wait(timeout); }
  // CUDA graphs made so far; none more in a steady state.
  virtual uint64_t graphs_made() const { return 0; }
};

// Errors: Unavailable, no queue or no memory; NotYet, Invalid: a node that the card's kernels
// cannot run. `context` outlives it.
Result<std::unique_ptr<NodeRunner>> MakeNodeRunner(Stream stream, const RunnerContext& context);

// Of the timeline: what a stream's spans are called.
Track TrackOf(Stream stream);

}  // namespace dt::worker
