// Costs of nodes and values for a full slice. A list of varying length counts with its limit, or as
// one id for each sample. Every id that is looked up counts as a distinct key, up to the number of
// keys of the table.
#pragma once

#include <span>

#include "common/layout/sample_part.h"
#include "common/plan/plan.h"
#include "ops/op_spec.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// The size of a step of the whole job.
struct StepSize {
  uint32_t batch_size = 0;
  uint32_t slices = 1;
  uint32_t devices = 1;  // Workers of a team, each of which looks up its own samples.
  // Samples in the largest slice.
  int64_t slice_samples() const { return (int64_t{batch_size} + slices - 1) / slices; }
};

inline StepSize StepSizeOf(const PlanRequest& request) {
  return {request.job.train.batch_size, request.slices, request.devices()};
}

class SliceCosts {
 public:
  // REQUIRES: graph and columns outlive this object.
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
  double SamplesIn(const SamplePart& part) const;

  const Graph& graph_;
  const std::span<const ColumnSpec> columns_;
  const StepSize step_;
  const int64_t samples_;
};

// Memory that a plan uses on one device, in bytes.
struct MemoryUse {
  double lasting = 0;   // Weights, state and replicas.
  double slots = 0;     // The slots of a slice and of the step, at full size.
  double unshared = 0;  // The size of the slots if no values shared one.
  uint32_t slot_count = 0;
  uint32_t lasting_count = 0;

  // The most that the engine allocates: lists and rows get an eighth more than they need, every
  // buffer starts at a multiple of 256 bytes, and each of `slices_at_once` slices has its own
  // slots.
  double allocated(uint32_t slices_at_once) const {
    return lasting + 256.0 * lasting_count + slices_at_once * (slots * 9 / 8 + 256.0 * slot_count);
  }
};
MemoryUse MemoryOf(const Plan& plan, const SliceCosts& costs, Device device);

}  // namespace dt::scheduler
