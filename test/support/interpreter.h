// The reference interpreter: runs a graph on the CPU kernels, all slices of a step in one thread,
// communication included. The planner's passes are tested against it: every value has memory of its
// own, nothing is reused, and nodes run in the order of the graph. RunOnSlots runs a plan as an
// engine does, in its order and with its memory plan.
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
// Initial parameters and state; random rows for tables on the worker.
Tensors FirstParameters(const Graph& graph, uint64_t seed);
// The same graph in float64, for runs of slice nodes only: update nodes need f32.
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
  // One node, with the symbols' sizes.
  void RunNode(const Node& node, const SliceData& sizes, Tensors& values, const RunInfo& run);

 private:
  static void Communicate(const Node& node, StepResult& result);
  // Runs a sum_rows node; returns the number of rows.
  int64_t SumRows(const Node& node, Step step, StepResult& result);

  const Graph& graph_;
  TaskPool& pool_;
  // Keys are (the input that holds row numbers, row number).
  std::map<std::pair<ValueIndex, uint32_t>, Step> last_update_;
};

// Runs the slice subgraphs of a pass in order, with the plan's slots as memory, which is filled
// with garbage first. Returns the final values of those marked in `wanted`.
struct SlotRun {
  const Plan& plan;
  const std::vector<Subgraph>& pass;
  const std::vector<bool>& wanted;  // Indexed by value.
};
Tensors RunOnSlots(const SlotRun& what, const SliceData& slice, const Tensors& parameters,
                   const RunInfo& run);

}  // namespace dt::test
