#include "worker/engine/bindings.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {
namespace {

// Kernels take one kind of view; nothing writes to an input.
void* Mutable(const void* data) { return const_cast<void*>(data); }

}  // namespace

Status Bindings::Open(Parameters& parameters) {
  DT_TRY_STATUS(ReadSymbols());
  for (ValueIndex v = 0; v < plan_.graph.values.size(); ++v) {
    const Value& value = plan_.graph.value(v);
    TensorView& view = views_[v];
    view.dtype = value.dtype;
    bool symbolic = false;
    for (const Dim& dim : value.shape) {
      view.shape.push_back(dim.symbol == kConstant ? dim.times : 0);
      symbolic |= dim.symbol != kConstant;
    }
    if (symbolic) symbolic_.push_back(v);
  }
  for (Parameters::Array& array : parameters.arrays()) {
    views_[array.value].data = array.values.data();
  }
  slot_bytes_.resize(plan_.slot_count);
  slots_.resize(plan_.slot_count);
  joined_.resize(plan_.graph.inputs.size());
  PlaceSlots();
  return OkStatus();
}

Status Bindings::ReadSymbols() {
  const Graph& graph = plan_.graph;
  const size_t symbols = graph.symbols.size();
  sizes_.assign(symbols, 0);
  symbol_lookup_.assign(symbols, kNone);
  symbol_table_.assign(symbols, kNone);
  for (SymbolIndex s = kBatch + 1; s < symbols; ++s) {
    const std::string& name = graph.symbols[s];
    for (uint32_t l = 0; l < graph.lookups.size(); ++l) {
      if (name == "N." + graph.lookups[l].name) symbol_lookup_[s] = l;
    }
    for (uint32_t t = 0; t < graph.tables.size(); ++t) {
      if (name == "U." + graph.tables[t].name) symbol_table_[s] = t;
    }
    if (symbol_lookup_[s] == kNone && symbol_table_[s] == kNone) {
      return Internal("the plan has a size \"{}\" of no lookup and no table", name);
    }
  }
  return OkStatus();
}

void Bindings::BindSlice(const SliceInputs& inputs) {
  SetSizes(inputs);
  PlaceSlots();
  for (const InputSpec& spec : plan_.graph.inputs) BindInput(spec, inputs);
}

void Bindings::SetSizes(const SliceInputs& inputs) {
  sizes_[kBatch] = inputs.plan.batch.samples;
  for (size_t s = kBatch + 1; s < sizes_.size(); ++s) {
    const bool ids = symbol_lookup_[s] != kNone;
    sizes_[s] = static_cast<int64_t>(ids ? inputs.plan.lookups[symbol_lookup_[s]].index.size()
                                         : inputs.plan.tables[symbol_table_[s]].size());
  }
  for (const ValueIndex v : symbolic_) {
    const SymShape& shape = plan_.graph.value(v).shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i].symbol != kConstant)
        views_[v].shape[i] = shape[i].times * sizes_[shape[i].symbol];
    }
  }
}

void Bindings::PlaceSlots() {
  std::ranges::fill(slot_bytes_, size_t{64});
  for (size_t v = 0; v < views_.size(); ++v) {
    const uint32_t slot = plan_.slot[v];
    if (slot != kNone) slot_bytes_[slot] = std::max(slot_bytes_[slot], views_[v].bytes());
  }
  for (size_t v = 0; v < views_.size(); ++v) {
    const uint32_t slot = plan_.slot[v];
    if (slot != kNone) views_[v].data = slots_[slot].Reserve(slot_bytes_[slot]);
  }
}

void Bindings::BindInput(const InputSpec& spec, const SliceInputs& inputs) {
  TensorView& view = views_[spec.value];
  const Batch& batch = inputs.plan.batch;
  const auto lists = [&]() -> const LookupLists& { return inputs.plan.lookups[spec.lookup]; };
  switch (spec.kind) {
    case InputKind::kFloats:
    case InputKind::kLabel:
    case InputKind::kSampleWeight:
      view.data = spec.columns.size() == 1
                      ? Mutable(batch.columns[spec.columns.front()].floats.data())
                      : JoinColumns(&spec - plan_.graph.inputs.data(), spec, batch);
      break;
    case InputKind::kLookupIndex:
      view.data = Mutable(lists().index.data());
      break;
    case InputKind::kLookupWeights:
      view.data = Mutable(lists().weights.data());
      break;
    case InputKind::kLookupEnds:
      view.data = Mutable(lists().ends.data());
      break;
    case InputKind::kRowEnds:
      view.data = Mutable(lists().row_ends.data());
      break;
    case InputKind::kRowOrder:
      view.data = Mutable(lists().row_order.data());
      break;
    case InputKind::kRows:
      DT_CHECK(inputs.rows[spec.table].size_bytes() == view.bytes());
      view.data = Mutable(inputs.rows[spec.table].data());
      break;
  }
}

// [B, columns] from columns of [B].
void* Bindings::JoinColumns(size_t input, const InputSpec& spec, const Batch& batch) {
  const size_t width = spec.columns.size();
  auto* const out =
      static_cast<float*>(joined_[input].Reserve(batch.samples * width * sizeof(float)));
  for (size_t c = 0; c < width; ++c) {
    const std::vector<float>& column = batch.columns[spec.columns[c]].floats;
    DT_CHECK(column.size() == batch.samples);
    for (size_t b = 0; b < batch.samples; ++b) out[b * width + c] = column[b];
  }
  return out;
}

uint64_t Bindings::bytes() const {
  uint64_t bytes = 0;
  for (const AlignedBuffer& slot : slots_) bytes += slot.capacity();
  for (const AlignedBuffer& joined : joined_) bytes += joined.capacity();
  return bytes;
}

}  // namespace dt::worker
