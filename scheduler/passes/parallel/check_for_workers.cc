#include <algorithm>

#include "ops/op_spec.h"
#include "scheduler/passes/parallel/parallel_graph.h"

namespace dt::scheduler {
namespace {

// Whether each device has its own part of the samples, in the order of the devices.
bool HasOwnSamples(const Layout& layout) {
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
  if (!lists || HasOwnSamples(parallel.layouts[input.value])) return OkStatus();
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

// A worker scores its own part of the samples, and so must have their outputs.
bool HasOwnOutputs(const Layout& layout, DeviceIndex device) {
  Range units{0, static_cast<int64_t>(DeviceCount(layout.matrix))};
  if (layout.dims[0].empty()) return true;
  const std::vector<uint32_t> at = CoordinatesOf(layout.matrix, device);
  for (const AxisIndex axis : layout.dims[0][0].axes) {
    units = EvenPart(units, layout.matrix[axis], at[axis]);
  }
  return units.begin <= device && device < units.end;
}

// An output whose classes are cut would have to be joined before it is scored.
Status CheckOutput(const ParallelGraph& parallel, const LossSpec& loss) {
  const Layout& layout = parallel.layouts[loss.output];
  for (DeviceIndex i = 0; i < parallel.devices; ++i) {
    if (HasOwnOutputs(layout, i)) continue;
    return NotYet("the input of loss {} is not where its samples are looked up", loss.name);
  }
  for (size_t d = 1; d < layout.dims.size(); ++d) {
    for (const CutFactor& factor : layout.dims[d]) {
      if (factor.axes.empty()) continue;
      return NotYet("the input of loss {} is cut along its columns", loss.name);
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
  for (const LossSpec& loss : parallel.graph.losses) {
    DT_TRY_STATUS(CheckOutput(parallel, loss));
  }
  return OkStatus();
}

}  // namespace dt::scheduler
