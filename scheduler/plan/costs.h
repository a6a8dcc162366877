// What nodes and values cost at the full size of a slice. Lists of varying length count with their
// bound, or as one id a sample; distinct keys as one for each id that is looked up, as far as the
// table has keys.
#pragma once

#include <span>

#include "common/graph/plan.h"
#include "ops/op_spec.h"

namespace dt::scheduler {

// Of a slice, at most.
inline int64_t SliceSamples(uint32_t batch_size, uint32_t slices) {
  return (int64_t{batch_size} + slices - 1) / slices;
}

class SliceCosts {
 public:
  // All outlive it. `samples` of a slice.
  SliceCosts(const Graph& graph, std::span<const ColumnSpec> columns, int64_t samples)
      : graph_(graph), columns_(columns), samples_(samples) {}

  int64_t samples() const { return samples_; }
  double Elements(const SymShape& shape) const;
  double Bytes(ValueIndex v) const;
  double Ids(const LookupSpec& lookup) const;
  double DistinctKeys(const TableUse& table) const;
  OpCost Of(const Node& node) const;

 private:
  double SymbolSize(SymbolIndex symbol) const;
  double StepSlices() const;  // If rows of tables on the worker are joined.

  const Graph& graph_;
  const std::span<const ColumnSpec> columns_;
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
