#include <algorithm>

#include "ops/op_spec.h"
#include "scheduler/passes/parallel/parallel_graph.h"

namespace dt::scheduler {
namespace {

// Whether each device has its own part of the samples, in the order of the devices.
bool AreInOrder(const Layout& layout) {
  if (layout.dims.empty() || layout.dims[0].empty() || !layout.partial.empty()) return false;
  uint64_t parts = 1;
  for (const AxisIndex axis : layout.dims[0][0].axes) parts *= layout.matrix[axis];
  const bool ascending = std::ranges::is_sorted(layout.dims[0][0].axes);
  return ascending && parts == DeviceCount(layout.matrix);
}

Status CheckInput(const ParallelGraph& parallel, const InputSpec& input) {
  const bool lists = input.kind == InputKind::kLookupIndex ||
                     input.kind == InputKind::kLookupEnds ||
                     input.kind == InputKind::kLookupWeights;
  if (!lists || AreInOrder(parallel.layouts[input.value])) return OkStatus();
  return WithHint(NotYet("lookup {} is not cut by its samples over all {} workers of the team",
                         parallel.graph.lookups[input.lookup].name, parallel.devices),
                  "leave out its strategy");
}

Status CheckParameter(const ParallelGraph& parallel, const ParameterSpec& parameter) {
  const Value& value = parallel.graph.value(parameter.value);
  Shape shape;
  for (const Dim& dim : value.shape) shape.push_back(dim.times);
  for (DeviceIndex i = 0; i < parallel.devices; ++i) {
    for (const Places& places : SliceOf(parallel.layouts[parameter.value], shape, i)) {
      if (places.size() <= 1) continue;
      return NotYet("a worker would hold several ranges of a dimension of \"{}\"", value.name);
    }
  }
  return OkStatus();
}

}  // namespace

Status CheckForWorkers(const ParallelGraph& parallel) {
  for (const TableUse& table : parallel.graph.tables) {
    if (table.store == kNone) continue;
    return WithHint(NotYet("table {} is on the workers, which are in teams of {}", table.name,
                           parallel.devices),
                    "set its device to ps");
  }
  for (const Node& node : parallel.graph.nodes) {
    if (TraitsOf(node.op).kind != OpKind::kCommunication) continue;
    for (const Dim& dim : parallel.graph.value(node.inputs[0]).shape) {
      if (dim.symbol <= kBatch) continue;
      return NotYet("\"{}\" is a list of ids or rows, and would change its layout",
                    parallel.graph.value(node.inputs[0]).name);
    }
  }
  for (const InputSpec& input : parallel.graph.inputs) {
    DT_TRY_STATUS(CheckInput(parallel, input));
  }
  for (const ParameterSpec& p : parallel.graph.parameters) {
    DT_TRY_STATUS(CheckParameter(parallel, p));
  }
  return OkStatus();
}

}  // namespace dt::scheduler
