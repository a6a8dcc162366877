// Carries out a plan on the CPU. For each step: RunSlice for every own slice, then Exchange, then
// Update; between steps, Evaluate. Owned by the train thread. In a steady state it allocates
// nothing.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/graph/plan.h"
#include "common/runtime/task_pool.h"
#include "ops/kernel.h"
#include "worker/collective/collective.h"
#include "worker/engine/bindings.h"
#include "worker/engine/parameters.h"
#include "worker/engine/slice_packs.h"

namespace dt::worker {

// Time spent in the kernels of one node so far.
struct NodeTiming {
  std::string node, op;
  uint64_t runs = 0;
  Duration time{};
};

class Engine {
 public:
  // Errors: Internal, a plan that does not hold together; NotYet, an operator without a CPU kernel.
  static Result<std::unique_ptr<Engine>> Create(Plan plan, TaskPool& pool);

  // Not ready yet: use Create.
  Engine(Plan plan, TaskPool& pool);

  const Plan& plan() const { return plan_; }
  Parameters& parameters() { return parameters_; }

  // Forward and backward of one slice. Gives, by table of the graph, the gradients f32 [distinct
  // keys, dim] of its rows (empty where none reaches them), valid until the next call. A slice
  // without samples adds nothing. Error: Unavailable, the loss or a gradient is not finite.
  Result<std::span<const std::span<const float>>> RunSlice(const SliceInputs& inputs,
                                                           const RunInfo& run);
  // Joins the slices of all ranks; owner[k] is the rank that ran slice k. Also without a slice of
  // one's own.
  Status Exchange(Collective& collective, std::span<const uint32_t> owner, Step step);
  // The rest of the step's nodes: the dense update.
  void Update(const RunInfo& run);
  // After Update: what is pushed of a parameter of the graph. REQUIRES: ParameterSpec::pushed.
  std::span<const float> pushed(size_t parameter) const;
  // Of the step exchanged last: over all slices, equal on all ranks.
  double step_loss() const { return step_loss_; }

  // Forward only: by loss of the graph, its output [samples], valid until the next call.
  std::span<const std::span<const float>> Evaluate(const SliceInputs& inputs, const RunInfo& run);

  std::vector<NodeTiming> Timings() const;
  uint64_t bytes() const { return bindings_.bytes() + parameters_.bytes(); }

 private:
  struct Prepared {  // One node, ready to run.
    Kernel kernel = nullptr;
    std::vector<TensorView> inputs, outputs;
    std::vector<std::byte> scratch;
    uint64_t runs = 0;
    Duration time{};
  };

  Status Prepare();
  void Run(NodeIndex index, const RunInfo& run);
  void RunPhase(std::span<const Subgraph> subgraphs, Phase phase, const RunInfo& run);
  void PlacePieces(SliceIndex slice);
  void CopyPieces(SliceIndex slice);
  void SpreadResults();
  Status CheckFinite(const Batch& batch);

  const Plan plan_;
  TaskPool& pool_;
  Parameters parameters_;
  SlicePacks packs_;
  Bindings bindings_;
  std::vector<Prepared> nodes_;  // By node.
  std::vector<std::span<const float>> row_grads_, outputs_;
  AlignedBuffer summed_, gathered_;
  std::vector<size_t> loss_pieces_;  // By loss: its piece of the exchange.
  double step_loss_ = 0;
};

}  // namespace dt::worker
