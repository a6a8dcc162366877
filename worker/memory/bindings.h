// Where every value of the plan is for the slice at hand: its actual shape and its memory. Owned by
// the train thread.
//
//   kNode        its slot of the memory plan, at the high-water mark so far; those of the
//                accelerator lie in one arena there, at the capacities of sizes: kernels there know
//                no more when they are given to it
//   kParameter   the dense parameters' arrays, or memory of the accelerator (kReplica too)
//   kInput       the batch, the lookup lists, the pulled rows: not copied, save float columns to be
//                joined
//   kTable       where the table on the worker has it
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "common/device/accelerator.h"
#include "common/device/tensor.h"
#include "common/plan/plan.h"
#include "worker/lookup/lookup_plan.h"
#include "worker/memory/aligned_buffer.h"
#include "worker/memory/parameters.h"
#include "worker/memory/table_view.h"

namespace dt::worker {

// By table of the graph: f32 [distinct keys, dim].
using TableRows = std::span<const std::span<const float>>;

class Bindings {
 public:
  // `plan` outlives it, as does `accelerator`, which may be null if no value lies there.
  Bindings(const Plan& plan, Accelerator* accelerator)
      : plan_(plan), accelerator_(accelerator), views_(plan.graph.values.size()) {}
  // Before anything else. Errors: Internal, the plan has a symbol that means nothing; Unavailable,
  // the accelerator's memory is too small. `parameters` outlives it; with `lasting`, which does
  // too, weights, state and replicas are where they are there.
  Status Open(Parameters& parameters, const Bindings* lasting = nullptr);

  // Everything but rows, and values that are placed elsewhere afterwards. `tables`: by table of the
  // graph; empty if none is on the worker. REQUIRES: the slice has samples, and nothing runs.
  // Error: Unavailable, the accelerator's memory is too small.
  Status BindSlice(const LookupPlan& slice, TableViews tables = {});
  void BindRows(TableRows rows);
  // Where several slices update tables on the worker: room for what the step's nodes make of the
  // places of all their keys. What slices left on the accelerator is lost. REQUIRES: nothing runs.
  // Error: as BindSlice.
  Status BindStep(TableViews tables);

  const TensorView& view(ValueIndex v) const { return views_[v]; }
  // Of a value f32.
  std::span<const float> floats(ValueIndex v) const {
    return {static_cast<const float*>(views_[v].data), static_cast<size_t>(views_[v].size())};
  }
  // By symbol, 1 first: of the slice bound last, and what the arena is laid out for: B exactly, of
  // others a mark at or above all sizes so far.
  std::span<const int64_t> sizes() const { return sizes_; }
  std::span<const int64_t> extents() const { return extents_; }
  void Place(ValueIndex v, void* data) { views_[v].data = data; }
  // Of slots and joined columns in host memory.
  uint64_t bytes() const;
  struct DeviceBytes {
    uint64_t lasting = 0;  // Weights, state, replicas.
    uint64_t arena = 0;
    uint32_t arena_growths = 0;  // Since Open.
  };
  DeviceBytes device_bytes() const;

 private:
  Status ReadSymbols();
  Status PlaceLasting(Parameters& parameters);
  void ShareLasting(const Bindings& other);
  void SetSizes(const LookupPlan& slice, TableViews tables);
  void SetSize(SymbolIndex symbol, size_t size);
  void SetRoom(SymbolIndex symbol, TableViews tables);
  void SetShapes();
  void PlaceTables(TableViews tables);
  void PinCopiedSlots();
  size_t BytesFor(ValueIndex v) const;
  Status PlaceSlots();
  Status GrowArena();
  void BindInput(const InputSpec& spec, const LookupPlan& slice);
  void* JoinColumns(size_t input, const InputSpec& spec, const Batch& batch);

  const Plan& plan_;
  Accelerator* const accelerator_;
  std::vector<TensorView> views_;
  std::vector<ValueIndex> symbolic_;      // Values whose shape depends on the slice.
  std::vector<uint32_t> symbol_lookup_;   // By symbol: the lookup whose ids it counts, …
  std::vector<uint32_t> symbol_table_;    // … or the table whose distinct keys it counts, …
  std::vector<uint32_t> symbol_step_;     // … or that whose keys of a step it counts, …
  std::vector<uint32_t> symbol_room_;     // … or the table on the worker whose rows it counts.
  std::vector<int64_t> sizes_, extents_;  // By symbol.
  std::vector<size_t> slot_bytes_;        // Needed now.
  std::vector<bool> on_device_;           // By slot.
  std::vector<AlignedBuffer> slots_;
  std::vector<size_t> device_capacity_, device_at_;  // By slot: its place in the arena.
  DeviceMemory arena_, lasting_;
  uint32_t arena_growths_ = 0;
  std::vector<AlignedBuffer> joined_;  // By input.
  std::deque<AlignedBuffer> host_replicas_;
};

}  // namespace dt::worker
