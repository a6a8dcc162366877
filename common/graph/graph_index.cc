#include "common/graph/graph_index.h"

#include <algorithm>

namespace dt {
namespace {

std::vector<OpTraits> TraitsOfNodes(const Graph& graph, TraitsLookup traits_of) {
  std::vector<OpTraits> all;
  all.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) all.push_back(traits_of(node.op));
  return all;
}

}  // namespace

GraphIndex::Lists::Lists(size_t rows, std::span<const Pair> pairs)
    : begin_(rows + 1, 0), items_(pairs.size()) {
  for (const auto& [row, item] : pairs) ++begin_[row + 1];
  for (size_t row = 0; row < rows; ++row) begin_[row + 1] += begin_[row];
  std::vector<uint32_t> end(begin_.begin(), begin_.end() - 1);
  for (const auto& [row, item] : pairs) items_[end[row]++] = item;
}

GraphIndex::GraphIndex(const Graph& graph, TraitsLookup traits_of)
    : graph_(graph),
      traits_(TraitsOfNodes(graph, traits_of)),
      readers_(ListsOfReaders()),
      writers_(ListsOfWriters()),
      gradients_(ListsOfGradients()),
      pulled_(graph.values.size(), false) {
  for (const TableUse& table : graph.tables) {
    if (graph.value(table.rows).kind == ValueKind::kInput) pulled_[table.rows] = true;
  }
}

GraphIndex::Lists GraphIndex::ListsOfReaders() const {
  std::vector<Lists::Pair> pairs;
  for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
    for (const ValueIndex v : graph_.nodes[n].inputs) pairs.emplace_back(v, n);
  }
  return {graph_.values.size(), pairs};
}

GraphIndex::Lists GraphIndex::ListsOfWriters() const {
  std::vector<Lists::Pair> pairs;
  for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
    const std::vector<ValueIndex>& inputs = graph_.nodes[n].inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (traits_[n].writes.Has(i)) pairs.emplace_back(inputs[i], n);
    }
  }
  return {graph_.values.size(), pairs};
}

GraphIndex::Lists GraphIndex::ListsOfGradients() const {
  std::vector<Lists::Pair> pairs;
  for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
    if (graph_.nodes[n].forward != kNone) pairs.emplace_back(graph_.nodes[n].forward, n);
  }
  return {graph_.nodes.size(), pairs};
}

bool GraphIndex::ReadsPulledRows(NodeIndex n) const {
  return std::ranges::any_of(graph_.nodes[n].inputs, [this](ValueIndex v) { return pulled_[v]; });
}

}  // namespace dt
