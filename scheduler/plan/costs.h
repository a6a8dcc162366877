// What nodes and values cost at the full size of a slice. Lists of varying length count with their
// bound, or as one id a sample; distinct keys as one for each id that is looked up, as far as the
// table has keys.
#pragma once

#include <span>

#include "common/plan/plan.h"
#include "ops/op_spec.h"

namespace dt::scheduler {

// How much a step of the whole job computes.
struct StepSize {
  uint32_t batch_size = 0;
  uint32_t slices = 1;
  // Samples of the largest slice.
  int64_t slice_samples() const { return (int64_t{batch_size} + slices - 1) / slices; }
};

class SliceCosts {
 public:
  // The graph and the columns outlive it.
  SliceCosts(const Graph& graph, std::span<const ColumnSpec> columns, StepSize step)
      : graph_(graph), columns_(columns), step_(step), samples_(step.slice_samples()) {}

  const StepSize& step() const { return step_; }
  double Elements(const SymShape& shape) const;
  double Bytes(ValueIndex v) const;
  double Ids(const LookupSpec& lookup) const;
  double DistinctKeys(const TableUse& table) const;
  OpCost Of(const Node& node) const;

 private:
  double SymbolSize(SymbolIndex symbol) const;

  const Graph& graph_;
  const std::span<const ColumnSpec> columns_;
  const StepSize step_;
  const int64_t samples_;
};

// What a plan takes of one device's memory.
struct MemoryUse {
  double lasting = 0;   // Weights, state, replicas.
  double slots = 0;     // Of a slice and the step, at full size, …
  double unshared = 0;  // … and if every value had memory of its own.
  uint32_t slot_count = 0;
  uint32_t lasting_count = 0;

  // As the engine allocates it, at most: lists and rows get an eighth more than they need, and
  // everything begins at a multiple of 256. `slices_at_once`: each has slots of its own.
  double allocated(uint32_t slices_at_once) const {
    return lasting + 256.0 * lasting_count + slices_at_once * (slots * 9 / 8 + 256.0 * slot_count);
  }
};
MemoryUse MemoryOf(const Plan& plan, const SliceCosts& costs, Device device);

}  // namespace dt::scheduler
