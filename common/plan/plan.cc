#include "common/plan/plan.h"

#include <algorithm>

namespace dt {

Sharers SharersOf(uint32_t number, uint32_t workers, uint32_t group) {
  if (group == 0) return {0, workers};
  const uint32_t first = number / group * group;
  return {first, std::min(group, workers - first)};
}

Stream StreamOf(OpKind kind, const Node& node) {
  if (kind == OpKind::kCommunication) return Stream::kComm;
  const bool gpu = node.device == Device::kGpu;
  if (kind == OpKind::kCopy) return gpu ? Stream::kToGpu : Stream::kToCpu;
  return gpu ? Stream::kGpu : Stream::kCpu;
}

bool CarriesCopies(Stream stream) { return stream == Stream::kToGpu || stream == Stream::kToCpu; }

std::string_view NameOf(Stream stream) {
  switch (stream) {
    case Stream::kCpu:
      return "cpu";
    case Stream::kGpu:
      return "gpu";
    case Stream::kToGpu:
      return "to gpu";
    case Stream::kToCpu:
      return "to cpu";
    case Stream::kComm:
      return "communication";
  }
  DT_UNREACHABLE();
}

std::vector<bool> KeptValues(const Graph& graph) {
  std::vector<bool> kept(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    if (node.phase == Phase::kSlice) continue;
    for (const ValueIndex v : node.inputs) kept[v] = true;
  }
  for (const TableUse& table : graph.tables) {
    if (table.row_grad != kNone) kept[table.row_grad] = true;
  }
  for (const ParameterSpec& parameter : graph.parameters) {
    if (parameter.pushed != kNone) kept[parameter.pushed] = true;
  }
  for (const LossSpec& loss : graph.losses) {
    kept[loss.output] = true;
    if (loss.loss != kNone) kept[loss.loss] = true;
  }
  return kept;
}

}  // namespace dt
