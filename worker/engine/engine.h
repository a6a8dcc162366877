// Carries out a plan on the processor and, if the plan asks for it, an accelerator. For each step:
// BeginStep; BeginSlice, GiveRows, RowGrads for every own slice; then FinishExchange, then Update;
// between steps, Evaluate. Owned by the train thread; the streams have threads of their own. In a
// steady state it allocates nothing.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/plan/plan.h"
#include "common/runtime/task_pool.h"
#include "ops/kernel.h"
#include "worker/engine/streams.h"
#include "worker/exchange/finite_checks.h"
#include "worker/exchange/step_exchange.h"
#include "worker/memory/bindings.h"
#include "worker/memory/parameter_copies.h"
#include "worker/memory/parameters.h"
#include "worker/tables/worker_tables.h"

namespace dt::worker {

// Time spent in the kernels of one node so far.
struct NodeTiming {
  std::string node, op;
  uint64_t runs = 0;
  Duration time{};
};

// One slice as the engine's input.
struct SliceInputs {
  const LookupPlan& plan;
  RowSpans rows;
};

class Engine {
 public:
  // Errors: Internal, if the plan is inconsistent; NotYet, if an operator has no kernel;
  // Unavailable, if the plan needs an accelerator, and there is none or it is too small. All
  // options outlive the engine.
  struct Options {
    TaskPool& pool;
    Accelerator* accelerator = nullptr;  // Needed by plans that have values there.
    WorkerTables* tables = nullptr;      // Needed by plans that have tables on the worker.
    TeamLink* team = nullptr;            // Needed if there are other workers.
    Timeline* timeline = nullptr;        // Records each node in training.
    Step steps_before = 0;               // See StartMessage.
    bool overlap = true;                 // False: one subgraph after the other.
    // False: the train thread communicates, while it waits for the end of a slice or step. Not for
    // teams of several workers.
    bool comm_thread = true;
  };
  static Result<std::unique_ptr<Engine>> Create(Plan plan, const Options& options);

  // Not ready yet: use Create.
  Engine(Plan plan, const Options& options);
  ~Engine();

  const Plan& plan() const { return plan_; }
  // The host's arrays. The caller may write them, so they are sent to the accelerator again before
  // they are used there.
  Parameters& parameters() {
    copies_->Touch();
    return parameters_;
  }
  // Waits for the update, then copies the accelerator's values to the host's arrays.
  Status FetchParameters();

  // Forward and backward pass of slices. At most slices_at_once() slices are under way, that is,
  // begun and without their gradients taken. BeginSlice runs what needs no rows. GiveRows is for
  // the slice begun last. RowGrads is for the slice begun first: it waits for the gradients of its
  // rows, f32 [distinct keys, dim] by table of the graph (empty if none reaches the table), valid
  // until the next BeginSlice; other nodes may still run. A slice and its rows must not change
  // until the BeginSlice after its RowGrads, or FinishExchange. A slice without samples adds
  // nothing. Errors: Unavailable, if a gradient is not finite.
  size_t slices_at_once() const { return lanes_.size(); }
  Status BeginSlice(const LookupPlan& slice, const RunInfo& run);
  void GiveRows(RowSpans rows);
  Result<RowSpans> RowGrads();
  Result<RowSpans> RunSlice(const SliceInputs& inputs, const RunInfo& run);
  // Begins a step, in which the slices that leave something for others are exchanged while the last
  // own slice runs. owner[k] is the team that runs slice k; teams without slices call it, too.
  // REQUIRES: the exchange of the step before has finished.
  void BeginStep(Step step, std::span<const uint32_t> owner);
  // Waits until all slices of all teams are exchanged. Errors: those of the communicator;
  // Unavailable, if a sum is not finite.
  Status FinishExchange();
  // Starts the rest of the step's nodes: the dense update.
  Status Update(const RunInfo& run);
  // Waits for the update, or for whatever else was started last.
  Status FinishUpdate();
  // After FinishUpdate: the values to push for a parameter of the graph. REQUIRES: the parameter
  // has a ParameterSpec::pushed.
  std::span<const float> pushed(size_t parameter) const;
  // After an error of the engine or of what feeds it: returns when nothing that was started runs
  // any more, so that slices and rows may go. An update that was started is made as a whole.
  // Afterwards parameters can be fetched, and the engine can only be destroyed; its team is of no
  // use.
  void Abandon();
  // By loss: its mean over the samples of the step exchanged last, equal on all ranks. Valid until
  // the next exchange.
  std::span<const double> step_losses() const { return exchange_.step_losses(); }

  // Forward pass only: returns, by loss of the graph, its output for the batch's own samples, valid
  // until the next call.
  Result<RowSpans> Evaluate(const SliceInputs& inputs, const RunInfo& run);

  // To be called after FetchParameters.
  std::vector<NodeTiming> Timings() const;
  uint64_t bytes() const;
  // The sum over the lanes.
  Bindings::DeviceBytes device_bytes() const;
  uint64_t cuda_graphs_made() const;

 private:
  // The state of one slice under way. The first lane also runs everything else.
  struct Lane {
    Lane(const Plan& plan, Accelerator* accelerator) : bindings(plan, accelerator) {}
    Bindings bindings;
    std::vector<PreparedNode> nodes;  // By node.
    SliceAtHand at_hand;
    bool slice = false;  // True from the begin of a slice until its end is awaited.
    std::vector<std::span<const float>> row_grads;
  };
  Status Prepare();
  bool SlicesMayOverlap() const;
  Status OpenLane(Accelerator* accelerator);
  Status OpenStreams(Accelerator* accelerator);
  Status PrepareNodes(Lane& lane) const;
  PreparedNode& PrepareNode(Lane& lane, NodeIndex index) const;
  void FindLastForPush();
  std::span<const float> OwnOutput(const Bindings& bindings, const Batch& batch, size_t loss) const;
  Pass PassOf(size_t lane, const std::vector<Subgraph>& subgraphs, const Phases& phases,
              const RunInfo& run) const;
  void StartJoins(size_t lane);
  Status EndPass(size_t lane);
  Status EndPasses();
  Status Bind(Lane& lane, const LookupPlan& slice, LookupFor purpose);

  const Plan plan_;
  const GraphIndex index_;
  const Options options_;
  std::optional<TeamLink> alone_;  // If the options name no team.
  TeamLink& team_;
  Parameters parameters_;
  StepExchange exchange_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Streams> streams_;  // Uses the lanes.
  std::unique_ptr<ParameterCopies> copies_;
  std::vector<uint32_t> for_push_;  // Subgraphs that compute the gradients of rows.
  // Numbers of slices in the step; modulo the lanes, they give the lane.
  size_t begun_ = 0, taken_ = 0;
  Step step_ = 0;
  size_t own_slices_ = 0;       // Own slices of the step that have not begun.
  bool joins_started_ = false;  // True once the joins of the step may run.
  bool updating_ = false;       // The update runs on the first lane.
  bool abandoned_ = false;
  std::vector<std::span<const float>> outputs_;
};

}  // namespace dt::worker
