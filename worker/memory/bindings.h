// Where every value of the plan is for the current slice: its actual shape and its memory. Owned by
// the train thread.
//
//   kNode        its slot of the memory plan, as large as ever needed; slots on the accelerator are
//                in one arena there, laid out for extents(), because what is recorded for it
//                knows no other sizes
//   kParameter   the dense parameters' arrays, or memory of the accelerator (also kReplica)
//   kInput       the batch, the lookup lists, the pulled rows: not copied, except columns
//                that must be joined
//   kTable       the memory of the table on the worker
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "common/device/accelerator.h"
#include "common/device/tensor.h"
#include "common/layout/sample_part.h"
#include "common/plan/plan.h"
#include "worker/lookup/lookup_plan.h"
#include "worker/memory/aligned_buffer.h"
#include "worker/memory/parameters.h"
#include "worker/memory/table_view.h"

namespace dt::worker {

// For each table of the graph: f32 [distinct keys, dim].
using RowSpans = std::span<const std::span<const float>>;

class Bindings {
 public:
  // `plan` and `accelerator` outlive it; `accelerator` may be null if no value is there.
  Bindings(const Plan& plan, Accelerator* accelerator)
      : plan_(plan), accelerator_(accelerator), views_(plan.graph.values.size()) {}
  // To be called first. `parameters` outlives it. With `lasting`, which also outlives it, weights,
  // state and replicas share the memory that `lasting` has for them. Errors: Internal, if the plan
  // has an unknown symbol; Unavailable, if the accelerator's memory is too small.
  Status Open(Parameters& parameters, const Bindings* lasting = nullptr);

  // Binds everything but rows, and values that are placed elsewhere afterwards (Place). `tables`:
  // for each table of the graph; empty if none is on the worker. REQUIRES: the slice has samples,
  // and nothing runs. Errors: Unavailable, if the accelerator's memory is too small.
  Status BindSlice(const LookupPlan& slice, TableViews tables = {});
  void BindRows(RowSpans rows);
  // Makes room for the step's nodes where several slices update tables on the worker: the sizes are
  // then those of all keys of the step. Values that slices left on the accelerator are lost.
  // REQUIRES: nothing runs. Errors: as for BindSlice.
  Status BindStep(TableViews tables);

  const TensorView& view(ValueIndex v) const { return views_[v]; }
  // REQUIRES: the value is f32.
  std::span<const float> floats(ValueIndex v) const {
    return {static_cast<const float*>(views_[v].data), static_cast<size_t>(views_[v].size())};
  }
  // By symbol, from 1 on: the sizes of the slice bound last, and those for which the arena is laid
  // out: exact for B, for others a value at or above all sizes so far.
  std::span<const int64_t> sizes() const { return sizes_; }
  std::span<const int64_t> extents() const { return extents_; }
  // Where the own rows of a parameter begin in a value of its shape, in elements.
  size_t FirstOwned(ValueIndex v) const;
  // The part of the slice's samples that this worker has; those of the first dimension of a value.
  Range SamplesIn(const SamplePart& part) const;
  Range SamplesIn(ValueIndex v) const;
  void Place(ValueIndex v, void* data) { views_[v].data = data; }
  // Host memory of slots and joined columns.
  uint64_t bytes() const;
  struct DeviceBytes {
    uint64_t lasting = 0;  // Weights, state, replicas.
    uint64_t arena = 0;
    uint32_t arena_growths = 0;  // Since Open.
  };
  DeviceBytes device_bytes() const;

 private:
  Status ReadSymbols(const Parameters& parameters);
  Status PlaceLasting(Parameters& parameters);
  void ShareLasting(const Bindings& other);
  void SetSizes(const LookupPlan& slice, TableViews tables);
  void SetSize(SymbolIndex symbol, size_t size);
  void SetRoom(SymbolIndex symbol, TableViews tables);
  void SetShapes();
  void PlaceTables(TableViews tables);
  void PinCopiedSlots();
  size_t BytesFor(ValueIndex v) const;
  // `of_step`: values of slices stay where they are.
  Status PlaceSlots(bool of_step);
  Status GrowArena();
  void BindInput(const InputSpec& spec, const LookupPlan& slice);

  const Plan& plan_;
  Accelerator* const accelerator_;
  std::vector<TensorView> views_;
  std::vector<ValueIndex> symbolic_;  // Values whose shape depends on the slice.
  // By symbol: the lookup whose ids it counts; each symbol but B is in one list.
  std::vector<uint32_t> symbol_lookup_;
  std::vector<uint32_t> symbol_table_;    // By symbol: the table whose distinct keys it counts.
  std::vector<uint32_t> symbol_step_;     // By symbol: the table whose keys of a step it counts.
  std::vector<uint32_t> symbol_room_;     // By symbol: the table on the worker whose room it is.
  std::vector<Range> symbol_rows_;        // By symbol: the own rows of a parameter.
  std::vector<SamplePart> symbol_part_;   // By symbol: the part of the samples that it counts.
  std::vector<int64_t> sizes_, extents_;  // By symbol.
  std::vector<size_t> slot_bytes_;        // By slot: what is needed now.
  std::vector<bool> on_device_;           // By slot.
  std::vector<AlignedBuffer> slots_;
  std::vector<size_t> device_capacity_, device_at_;  // By slot, in the arena.
  DeviceMemory arena_, lasting_;
  uint32_t arena_growths_ = 0;
  std::vector<AlignedBuffer> joined_;  // By input.
  std::deque<AlignedBuffer> host_replicas_;
};

}  // namespace dt::worker
