// Where every value of the plan is for the slice at hand: its actual shape and its memory. Owned by
// the train thread.
//
//   kNode        its slot of the memory plan, at the high-water mark so far
//   kParameter   the dense parameters' arrays
//   kInput       the batch, the lookup lists, the pulled rows: not copied, save float columns to be
//   joined
#pragma once

#include <span>
#include <vector>

#include "common/device/tensor.h"
#include "common/graph/plan.h"
#include "worker/engine/aligned_buffer.h"
#include "worker/engine/parameters.h"
#include "worker/lookup/lookup_plan.h"

namespace dt::worker {

// One slice as it goes into the engine.
struct SliceInputs {
  const LookupPlan& plan;
  std::span<const std::span<const float>> rows;  // By table of the graph: f32 [distinct keys, dim].
};

class Bindings {
 public:
  // `plan` outlives it.
  explicit Bindings(const Plan& plan) : plan_(plan), views_(plan.graph.values.size()) {}
  // Before anything else. Error: Internal, the plan has a symbol that means nothing. `parameters`
  // outlives it.
  Status Open(Parameters& parameters);

  // Everything but values that are placed elsewhere afterwards. REQUIRES: the slice has samples.
  void BindSlice(const SliceInputs& inputs);

  const TensorView& view(ValueIndex v) const { return views_[v]; }
  void Place(ValueIndex v, void* data) { views_[v].data = data; }
  uint64_t bytes() const;  // Of slots and joined columns.

 private:
  Status ReadSymbols();
  void SetSizes(const SliceInputs& inputs);
  void PlaceSlots();
  void BindInput(const InputSpec& spec, const SliceInputs& inputs);
  void* JoinColumns(size_t input, const InputSpec& spec, const Batch& batch);

  const Plan& plan_;
  std::vector<TensorView> views_;
  std::vector<ValueIndex> symbolic_;     // Values whose shape depends on the slice.
  std::vector<uint32_t> symbol_lookup_;  // By symbol: the lookup whose ids it counts, …
  std::vector<uint32_t> symbol_table_;   // … or the table whose distinct keys it counts.
  std::vector<int64_t> sizes_;           // By symbol.
  std::vector<size_t> slot_bytes_;       // Needed now.
  std::vector<AlignedBuffer> slots_;
  std::vector<AlignedBuffer> joined_;  // By input.
};

}  // namespace dt::worker
