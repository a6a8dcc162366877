#include "worker/exchange/finite_checks.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace dt::worker {
namespace {

// Infinities and NaNs are the floats whose exponent is all ones; compares integers to be
// vectorised.
bool AllFinite(std::span<const float> values) {
  uint32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<uint32_t>(value) & 0x7fffffffu);
  }
  return largest < 0x7f800000u;
}

Status NotFinite(std::string_view what, Step step) {
  return WithHint(
      Unavailable("{} is not finite at step {}", what, step),
      "lower the learning rate, set optimizer.clip_norm, or look for extreme input values");
}

bool OwnGradsFinite(const Graph& graph, const Bindings& bindings) {
  return std::ranges::all_of(graph.parameters, [&](const ParameterSpec& p) {
    if (p.grad == kNone || graph.value(p.grad).device == Device::kGpu) return true;
    return AllFinite(bindings.floats(p.grad));
  });
}

}  // namespace

Status CheckLosses(const Graph& graph, const Bindings& bindings, const SliceAtHand& slice) {
  for (const LossSpec& loss : graph.losses) {
    if (AllFinite(bindings.floats(loss.loss))) continue;
    return NotFinite(
        fmt::format("loss {} of slice {} (samples {} to {} of the epoch)", loss.name, slice.slice,
                    slice.first_sample, slice.first_sample + slice.samples - 1),
        slice.step);
  }
  return OkStatus();
}

Status CheckRowGrads(const Graph& graph, RowSpans row_grads, const SliceAtHand& slice) {
  for (size_t t = 0; t < row_grads.size(); ++t) {
    if (AllFinite(row_grads[t])) continue;
    return NotFinite(
        fmt::format("the gradient of table {} in slice {}", graph.tables[t].name, slice.slice),
        slice.step);
  }
  return OkStatus();
}

Status CheckUpdatedRows(const GraphIndex& index, const Bindings& bindings,
                        const SliceAtHand& slice) {
  const Graph& graph = index.graph();
  const auto is_finite = [&](NodeIndex n) {
    const Node& update = graph.nodes[n];
    if (update.device == Device::kGpu) return true;
    // CheckRowSums checks these.
    if (graph.value(update.inputs[1]).kind != ValueKind::kInput) return true;
    return AllFinite(bindings.floats(update.inputs[2]));
  };
  for (const TableUse& table : graph.tables) {
    if (table.store == kNone || std::ranges::all_of(index.writers(table.store), is_finite))
      continue;
    return NotFinite(fmt::format("the gradient of table {} in slice {}", table.name, slice.slice),
                     slice.step);
  }
  return OkStatus();
}

Status CheckRowSums(const TableUse& table, std::span<const float> sums, Step step) {
  if (AllFinite(sums)) return OkStatus();
  return NotFinite(fmt::format("the gradient of table {}", table.name), step);
}

Status CheckDenseGrads(const Graph& graph, const Bindings& bindings, std::span<const float> sums,
                       Step step) {
  const bool finite = sums.empty() ? OwnGradsFinite(graph, bindings) : AllFinite(sums);
  return finite ? OkStatus() : NotFinite("the gradient of the dense parameters", step);
}

}  // namespace dt::worker
