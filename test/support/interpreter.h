// The reference interpreter: runs a graph on the CPU kernels, all slices of a step in lock step in
// one thread, communication included. The judge of the planner's passes: every value has memory of
// its own, nothing is reused, nodes run in the order of the graph. RunOnSlots runs a plan as an
// engine does, with its order and its memory plan.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "common/plan/plan.h"
#include "common/runtime/task_pool.h"
#include "ops/kernel.h"
#include "test/support/host_tensor.h"

namespace dt::test {

using Tensors = std::map<ValueIndex, HostTensor>;

// The inputs of one slice.
struct SliceData {
  uint32_t samples = 0;
  uint64_t first_sample = 0;
  std::map<SymbolIndex, int64_t> sizes;
  Tensors inputs;
};

// Random inputs of a slice: keys among `rows` rows of each table, lists of 0 to 3 ids, labels 0
// and 1.
SliceData RandomSlice(const Graph& graph, uint32_t samples, uint64_t seed);
// Parameters and state with their first values; rows of tables on the worker, at random.
Tensors FirstParameters(const Graph& graph, uint64_t seed);
// The same graph in float64. REQUIRES: no step node has run on it.
Graph InFloat64(Graph graph);
Tensors InFloat64(Tensors tensors);

struct StepResult {
  std::vector<Tensors> slices;  // Every value of the slice pass, by slice.
  Tensors step;                 // Every value of the step pass.
};

class Interpreter {
 public:
  Interpreter(const Graph& graph, TaskPool& pool) : graph_(graph), pool_(pool) {}

  // Runs the slice nodes of each slice, then the step nodes, which change `parameters`.
  StepResult RunStep(const std::vector<SliceData>& slices, Tensors& parameters, const RunInfo& run);
  // The slice nodes of one slice only.
  Tensors RunSlice(const SliceData& slice, Tensors& parameters, RunInfo run);

 private:
  void RunNode(const Node& node, const SliceData& sizes, Tensors& values, const RunInfo& run);
  static void Communicate(const Node& node, StepResult& result);
  // Of sum_rows; gives how many rows there are.
  int64_t SumRows(const Node& node, Step step, StepResult& result);

  const Graph& graph_;
  TaskPool& pool_;
  std::map<std::pair<ValueIndex, uint32_t>, Step> last_update_;  // By numbers input and number.
};

// Runs the slice subgraphs of a pass in their order with the plan's slots as memory, filled with
// rubbish first; gives the values that `wanted` marks, as they are at the end.
struct SlotRun {
  const Plan& plan;
  const std::vector<Subgraph>& pass;
  const std::vector<bool>& wanted;  // By value.
};
Tensors RunOnSlots(const SlotRun& what, const SliceData& slice, const Tensors& parameters,
                   const RunInfo& run);

}  // namespace dt::test
