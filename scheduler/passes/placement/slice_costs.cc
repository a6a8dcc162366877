#include "scheduler/passes/placement/slice_costs.h"

#include <algorithm>
#include <cmath>

namespace dt::scheduler {

double SliceCosts::Elements(const SymShape& shape) const {
  double elements = 1;
  for (const Dim& dim : shape) elements *= static_cast<double>(dim.times) * SymbolSize(dim.symbol);
  return elements;
}

double SliceCosts::SamplesIn(const SamplePart& part) const {
  double samples = static_cast<double>(samples_);
  for (size_t i = 0; i + 1 < part.size(); i += 2) samples /= static_cast<double>(part[i]);
  return samples;
}

double SliceCosts::SymbolSize(SymbolIndex symbol) const {
  if (symbol == kConstant) return 1;
  const std::string& name = graph_.symbols[symbol];
  if (const SamplePart part = SamplePartOf(name); !part.empty()) return SamplesIn(part);
  double size = symbol == kBatch ? static_cast<double>(samples_) : 0;
  for (const LookupSpec& lookup : graph_.lookups) {
    const std::string& table = graph_.tables[lookup.table].name;
    if (name == "N." + lookup.name) size += Ids(lookup);
    if (name == "S." + table) size += Ids(lookup) * step_.slices;
  }
  // The size of a table on the worker with an open key range is unknown, unless the job or
  // data_stats give it.
  for (const TableUse& table : graph_.tables) {
    if (name == "U." + table.name) size = DistinctKeys(table);
    if (name == "R." + table.name) size = static_cast<double>(table.expected_rows);
  }
  return size;
}

double SliceCosts::DistinctKeys(const TableUse& table) const {
  double ids = 0;
  for (const LookupSpec& lookup : graph_.lookups) {
    if (graph_.tables[lookup.table].id == table.id) ids += Ids(lookup);
  }
  return table.keys_end == 0 ? ids : std::min(ids, static_cast<double>(table.keys_end));
}

double SliceCosts::Ids(const LookupSpec& lookup) const {
  const uint32_t max_len = columns_[lookup.columns[0]].max_len;
  const uint32_t each = lookup.length > 0 ? lookup.length : std::max(1u, max_len);
  return static_cast<double>(samples_) / step_.devices * each;
}

double SliceCosts::Bytes(ValueIndex v) const {
  const Value& value = graph_.value(v);
  return Elements(value.shape) * static_cast<double>(SizeOf(value.dtype));
}

OpCost SliceCosts::Of(const Node& node) const {
  const OpSpec* op = FindOp(node.op);
  if (op != nullptr && op->cost != nullptr) {
    const double samples = SamplesIn(IntsAttr(node.attrs, "sample_part"));
    return op->cost(graph_, node, static_cast<int64_t>(std::ceil(samples)));
  }
  OpCost cost;  // The cost of an operator that reads and writes every element once.
  for (const ValueIndex v : node.outputs) cost.flops += Elements(graph_.value(v).shape);
  for (const auto* side : {&node.inputs, &node.outputs}) {
    for (const ValueIndex v : *side) cost.bytes += Bytes(v);
  }
  return cost;
}

MemoryUse MemoryOf(const Plan& plan, const SliceCosts& costs, Device device) {
  MemoryUse use;
  std::vector<double> slots(plan.slot_count, 0);
  std::vector<bool> used(plan.slot_count, false);
  for (size_t v = 0; v < plan.slot.size(); ++v) {
    const Value& value = plan.graph.value(static_cast<ValueIndex>(v));
    if (value.device != device) continue;
    const double bytes = costs.Bytes(static_cast<ValueIndex>(v));
    if (value.kind != ValueKind::kNode && value.kind != ValueKind::kInput) {
      use.lasting += bytes;
      ++use.lasting_count;
    }
    if (plan.slot[v] == kNone) continue;
    slots[plan.slot[v]] = std::max(slots[plan.slot[v]], bytes);
    used[plan.slot[v]] = true;
    use.unshared += bytes;
  }
  for (const double bytes : slots) use.slots += bytes;
  use.slot_count = static_cast<uint32_t>(std::ranges::count(used, true));
  return use;
}

}  // namespace dt::scheduler
