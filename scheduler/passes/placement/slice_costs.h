// Costs of nodes and values at the full size of a slice. A list of varying length counts with its
// bound, or as one id a sample. Each id that is looked up counts as a distinct key, up to the
// number of keys that the table has.
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

// The memory that a plan takes of one device, in bytes.
struct MemoryUse {
  double lasting = 0;   // Weights, state, replicas.
  double slots = 0;     // The slots of a slice and of the step, at full size.
  double unshared = 0;  // The same if every value had memory of its own.
  uint32_t slot_count = 0;
  uint32_t lasting_count = 0;

  // The most that the engine allocates: lists and rows get an eighth more than they need,
  // everything begins at a multiple of 256, and each of `slices_at_once` has slots of its own.
  double allocated(uint32_t slices_at_once) const {
    return lasting + 256.0 * lasting_count + slices_at_once * (slots * 9 / 8 + 256.0 * slot_count);
  }
};
MemoryUse MemoryOf(const Plan& plan, const SliceCosts& costs, Device device);

}  // namespace dt::scheduler
