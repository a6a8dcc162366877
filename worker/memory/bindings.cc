#include "worker/memory/bindings.h"

#include <algorithm>

#include "common/base/check.h"
#include "worker/memory/joined_columns.h"

namespace dt::worker {
namespace {

// Kernels take one kind of view; nothing writes to an input.
void* Mutable(const void* data) { return const_cast<void*>(data); }

// Null in evaluation, which has no lists that only gradients read.
void* DataOrNull(const std::vector<uint32_t>& list) {
  return list.empty() ? nullptr : Mutable(list.data());
}

size_t DeviceAligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

bool IsLasting(const Value& value) {
  return value.kind != ValueKind::kNode && value.kind != ValueKind::kInput &&
         value.kind != ValueKind::kTable;
}

}  // namespace

Status Bindings::Open(Parameters& parameters, const Bindings* lasting) {
  DT_TRY_STATUS(ReadSymbols(parameters));
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
  if (lasting == nullptr) {
    DT_TRY_STATUS(PlaceLasting(parameters));
  } else {
    ShareLasting(*lasting);
  }
  slot_bytes_.resize(plan_.slot_count);
  slots_.resize(plan_.slot_count);
  on_device_.resize(plan_.slot_count);
  device_capacity_.resize(plan_.slot_count);
  device_at_.resize(plan_.slot_count);
  for (ValueIndex v = 0; v < views_.size(); ++v) {
    if (plan_.slot[v] == kNone) continue;
    on_device_[plan_.slot[v]] = plan_.graph.value(v).device == Device::kGpu;
  }
  PinCopiedSlots();
  SetShapes();
  joined_.resize(plan_.graph.inputs.size());
  // Bindings that share `lasting` place their slots with their first slice, if one comes.
  return lasting == nullptr ? PlaceSlots(false) : OkStatus();
}

void Bindings::ShareLasting(const Bindings& other) {
  for (ValueIndex v = 0; v < views_.size(); ++v) {
    if (IsLasting(plan_.graph.value(v))) views_[v].data = other.views_[v].data;
  }
}

// Copies of the accelerator use host slots while streams do other things, so these slots are
// pinned.
void Bindings::PinCopiedSlots() {
  const auto pin = [this](ValueIndex v) {
    const uint32_t slot = plan_.slot[v];
    if (slot != kNone && !on_device_[slot]) slots_[slot] = AlignedBuffer(accelerator_);
  };
  for (const auto* pass : {&plan_.train, &plan_.evaluate}) {
    for (const Subgraph& subgraph : *pass) {
      if (!CarriesCopies(subgraph.stream)) continue;
      for (const NodeIndex n : subgraph.nodes) {
        std::ranges::for_each(plan_.graph.nodes[n].inputs, pin);
        std::ranges::for_each(plan_.graph.nodes[n].outputs, pin);
      }
    }
  }
}

// Weights, optimizer state and replicas are in host arrays, or in one piece of the accelerator's
// memory.
Status Bindings::PlaceLasting(Parameters& parameters) {
  for (Parameters::Array& array : parameters.arrays()) {
    views_[array.value].data = array.values.data();
  }
  for (const PartSpec& part : plan_.graph.parts) {
    views_[part.value].data = static_cast<float*>(views_[part.of].data) + FirstOwned(part.value);
  }
  std::vector<ValueIndex> there;
  size_t bytes = 0;
  for (ValueIndex v = 0; v < views_.size(); ++v) {
    const Value& value = plan_.graph.value(v);
    if (!IsLasting(value)) continue;
    if (value.device == Device::kGpu) {
      there.push_back(v);
      bytes += DeviceAligned(views_[v].bytes());
    } else if (value.kind == ValueKind::kReplica) {
      views_[v].data = host_replicas_.emplace_back(accelerator_).Reserve(views_[v].bytes());
    }
  }
  if (there.empty()) return OkStatus();
  DT_CHECK(accelerator_ != nullptr);
  DT_TRY(lasting_, DeviceMemory::Make(*accelerator_, bytes));
  std::byte* at = lasting_.data();
  for (const ValueIndex v : there) {
    views_[v].data = at;
    at += DeviceAligned(views_[v].bytes());
  }
  return OkStatus();
}

Status Bindings::ReadSymbols(const Parameters& parameters) {
  const Graph& graph = plan_.graph;
  const size_t symbols = graph.symbols.size();
  sizes_.assign(symbols, 0);
  sizes_[kConstant] = 1;
  extents_ = sizes_;
  symbol_lookup_.assign(symbols, kNone);
  symbol_table_.assign(symbols, kNone);
  symbol_step_.assign(symbols, kNone);
  symbol_room_.assign(symbols, kNone);
  symbol_part_.assign(symbols, {});
  symbol_rows_.assign(symbols, {});
  std::vector<bool> of_part(symbols, false);
  for (size_t p = 0; p < graph.parts.size(); ++p) {
    const SymbolIndex symbol = graph.value(graph.parts[p].value).shape[0].symbol;
    symbol_rows_[symbol] = parameters.own_rows(p);
    sizes_[symbol] = extents_[symbol] = symbol_rows_[symbol].size();
    of_part[symbol] = true;
  }
  for (SymbolIndex s = kBatch + 1; s < symbols; ++s) {
    const std::string& name = graph.symbols[s];
    for (uint32_t l = 0; l < graph.lookups.size(); ++l) {
      if (name == "N." + graph.lookups[l].name) symbol_lookup_[s] = l;
    }
    for (uint32_t t = 0; t < graph.tables.size(); ++t) {
      if (name == "U." + graph.tables[t].name) symbol_table_[s] = t;
      if (name == "S." + graph.tables[t].name) symbol_step_[s] = t;
      if (name == "R." + graph.tables[t].name) symbol_room_[s] = t;
    }
    symbol_part_[s] = SamplePartOf(name);
    if (!symbol_part_[s].empty() || of_part[s]) continue;
    const auto means = {symbol_lookup_[s], symbol_table_[s], symbol_step_[s], symbol_room_[s]};
    if (std::ranges::count(means, kNone) == 4) {
      return Internal("the plan has a size \"{}\" of no lookup and no table", name);
    }
  }
  return OkStatus();
}

Status Bindings::BindSlice(const LookupPlan& slice, TableViews tables) {
  SetSizes(slice, tables);
  DT_TRY_STATUS(PlaceSlots(false));
  for (const InputSpec& spec : plan_.graph.inputs) BindInput(spec, slice);
  PlaceTables(tables);
  return OkStatus();
}

Status Bindings::BindStep(TableViews tables) {
  for (SymbolIndex s = kBatch + 1; s < sizes_.size(); ++s) {
    if (symbol_room_[s] != kNone) SetRoom(s, tables);
    if (symbol_step_[s] != kNone) SetSize(s, tables[symbol_step_[s]].numbers.size());
  }
  SetShapes();
  DT_TRY_STATUS(PlaceSlots(true));
  PlaceTables(tables);
  return OkStatus();
}

void Bindings::PlaceTables(TableViews tables) {
  for (size_t t = 0; t < tables.size(); ++t) {
    const ValueIndex store = plan_.graph.tables[t].store;
    if (store != kNone) views_[store].data = tables[t].rows;
  }
  for (const InputSpec& spec : plan_.graph.inputs) {
    if (spec.kind != InputKind::kRowNumbers && spec.kind != InputKind::kStepsSinceUpdate) continue;
    const TableView& table = tables[spec.table];
    const bool numbers = spec.kind == InputKind::kRowNumbers;
    views_[spec.value].data = Mutable((numbers ? table.numbers : table.steps_since_update).data());
  }
}

void Bindings::BindRows(RowSpans rows) {
  for (const InputSpec& spec : plan_.graph.inputs) {
    if (spec.kind != InputKind::kRows) continue;
    DT_CHECK(rows[spec.table].size_bytes() == views_[spec.value].bytes());
    views_[spec.value].data = Mutable(rows[spec.table].data());
  }
}

void Bindings::SetSizes(const LookupPlan& slice, TableViews tables) {
  sizes_[kBatch] = slice.batch.samples;
  for (SymbolIndex s = kBatch + 1; s < sizes_.size(); ++s) {
    if (!symbol_part_[s].empty()) sizes_[s] = extents_[s] = SamplesIn(symbol_part_[s]).size();
    if (symbol_room_[s] != kNone) SetRoom(s, tables);
    if (symbol_lookup_[s] != kNone) SetSize(s, slice.lookups[symbol_lookup_[s]].index.size());
    if (symbol_table_[s] != kNone) SetSize(s, slice.tables[symbol_table_[s]].size());
  }
  extents_[kBatch] = sizes_[kBatch];
  SetShapes();
}

size_t Bindings::FirstOwned(ValueIndex v) const {
  const SymShape& shape = plan_.graph.value(v).shape;
  int64_t width = 1;
  for (size_t d = 1; d < shape.size(); ++d) width *= shape[d].times;
  return static_cast<size_t>(symbol_rows_[shape[0].symbol].begin * width);
}

Range Bindings::SamplesIn(const SamplePart& part) const {
  return SamplesOf(part, sizes_[kBatch], plan_.devices, plan_.position);
}

Range Bindings::SamplesIn(ValueIndex v) const {
  const SymShape& shape = plan_.graph.value(v).shape;
  return SamplesIn(shape.empty() ? SamplePart() : symbol_part_[shape[0].symbol]);
}

// An extent that is passed grows by an eighth more, so that slowly growing sizes settle.
void Bindings::SetSize(SymbolIndex symbol, size_t size) {
  const auto now = sizes_[symbol] = static_cast<int64_t>(size);
  if (now > extents_[symbol]) extents_[symbol] = now + now / 8;
}

void Bindings::SetRoom(SymbolIndex symbol, TableViews tables) {
  sizes_[symbol] = extents_[symbol] = tables[symbol_room_[symbol]].room;
}

void Bindings::SetShapes() {
  for (const ValueIndex v : symbolic_) {
    const SymShape& shape = plan_.graph.value(v).shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i].symbol != kConstant)
        views_[v].shape[i] = shape[i].times * sizes_[shape[i].symbol];
    }
  }
}

size_t Bindings::BytesFor(ValueIndex v) const {
  const Value& value = plan_.graph.value(v);
  if (value.device != Device::kGpu) return views_[v].bytes();
  size_t bytes = SizeOf(value.dtype);
  for (const Dim& dim : value.shape) {
    bytes *= static_cast<size_t>(dim.times * extents_[dim.symbol]);
  }
  return bytes;
}

Status Bindings::PlaceSlots(bool of_step) {
  std::ranges::fill(slot_bytes_, size_t{64});
  for (ValueIndex v = 0; v < views_.size(); ++v) {
    const uint32_t slot = plan_.slot[v];
    if (slot != kNone) slot_bytes_[slot] = std::max(slot_bytes_[slot], BytesFor(v));
  }
  DT_TRY_STATUS(GrowArena());
  for (size_t v = 0; v < views_.size(); ++v) {
    const uint32_t slot = plan_.slot[v];
    if (slot == kNone) continue;
    const Node& producer = plan_.graph.nodes[plan_.graph.values[v].producer];
    if (of_step && producer.phase == Phase::kSlice) continue;
    views_[v].data = on_device_[slot] ? arena_.data() + device_at_[slot]
                                      : slots_[slot].Reserve(slot_bytes_[slot]);
  }
  return OkStatus();
}

Status Bindings::GrowArena() {
  bool grown = false;
  size_t bytes = 0;
  for (size_t slot = 0; slot < slot_bytes_.size(); ++slot) {
    if (!on_device_[slot]) continue;
    if (slot_bytes_[slot] > device_capacity_[slot]) {
      device_capacity_[slot] = DeviceAligned(slot_bytes_[slot]);
      grown = true;
    }
    device_at_[slot] = bytes;
    bytes += device_capacity_[slot];
  }
  if (!grown) return OkStatus();
  if (arena_.bytes() > 0) ++arena_growths_;
  arena_ = DeviceMemory();  // Nothing in the arena outlives a slice.
  DT_TRY(arena_, DeviceMemory::Make(*accelerator_, bytes));
  return OkStatus();
}

Bindings::DeviceBytes Bindings::device_bytes() const {
  return {lasting_.bytes(), arena_.bytes(), arena_growths_};
}

void Bindings::BindInput(const InputSpec& spec, const LookupPlan& slice) {
  TensorView& view = views_[spec.value];
  const Batch& batch = slice.batch;
  const auto lists = [&]() -> const LookupLists& { return slice.lookups[spec.lookup]; };
  switch (spec.kind) {
    case InputKind::kFloats:
    case InputKind::kLabel:
    case InputKind::kSampleWeight:
      if (spec.columns.size() == 1) {
        const std::vector<float>& column = batch.columns[spec.columns.front()].floats;
        const auto width = static_cast<size_t>(view.dim(1));
        if (column.size() == width * batch.samples) {
          view.data = Mutable(column.data() + SamplesIn(spec.value).begin * width);
          break;
        }
      }
      [[fallthrough]];
    case InputKind::kIds:
    case InputKind::kIdWeights:
      view.data = JoinColumns(spec, {SamplesIn(spec.value), static_cast<size_t>(view.dim(1))},
                              batch, joined_[&spec - plan_.graph.inputs.data()]);
      break;
    case InputKind::kKeys:
      view.data =
          Mutable(batch.WithAll(spec.columns.front()).keys.data() + SamplesIn(spec.value).begin);
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
      view.data = DataOrNull(lists().row_ends);
      break;
    case InputKind::kRowOrder:
      view.data = DataOrNull(lists().row_order);
      break;
    case InputKind::kRows:        // Set by BindRows.
    case InputKind::kRowNumbers:  // Set by PlaceTables.
    case InputKind::kStepsSinceUpdate:
      break;
  }
}

uint64_t Bindings::bytes() const {
  uint64_t bytes = 0;
  for (const AlignedBuffer& slot : slots_) bytes += slot.capacity();
  for (const AlignedBuffer& joined : joined_) bytes += joined.capacity();
  return bytes;
}

}  // namespace dt::worker
