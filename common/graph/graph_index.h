// Which nodes read, write and differentiate what in a graph, and the traits of each node's
// operator. Computed once per graph and shared by all passes that need it.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "common/graph/graph.h"
#include "common/graph/op_traits.h"

namespace dt {

// Immutable. The index describes the graph at the time of its construction: after a change of
// nodes, of their operators or inputs, or of tables, make a new one. A value's producer is not here
// but in the value itself (Value::producer).
class GraphIndex {
 public:
  // REQUIRES: CheckGraph accepts the graph, which outlives the index.
  GraphIndex(const Graph& graph, TraitsLookup traits_of);

  const Graph& graph() const { return graph_; }
  const OpTraits& traits(NodeIndex n) const { return traits_[n]; }
  bool Is(NodeIndex n, OpKind kind) const { return traits_[n].kind == kind; }

  // The nodes with `v` among their inputs, ascending; a node is listed once for each such input.
  std::span<const NodeIndex> readers(ValueIndex v) const { return readers_.row(v); }
  // The nodes that change `v` in place, ascending. They are also readers.
  std::span<const NodeIndex> writers(ValueIndex v) const { return writers_.row(v); }
  // The nodes that differentiate `n`, ascending.
  std::span<const NodeIndex> gradients(NodeIndex n) const { return gradients_.row(n); }
  // True for the rows of a table on servers.
  bool IsPulledRows(ValueIndex v) const { return pulled_[v]; }
  // True if such rows are among the node's own inputs.
  bool ReadsPulledRows(NodeIndex n) const;

 private:
  // Lists of varying length, stored one after the other.
  class Lists {
   public:
    using Pair = std::pair<uint32_t, NodeIndex>;  // Row and item.
    Lists(size_t rows, std::span<const Pair> pairs);
    std::span<const NodeIndex> row(uint32_t row) const {
      return std::span(items_).subspan(begin_[row], begin_[row + 1] - begin_[row]);
    }

   private:
    std::vector<uint32_t> begin_;
    std::vector<NodeIndex> items_;
  };
  Lists ListsOfReaders() const;
  Lists ListsOfWriters() const;
  Lists ListsOfGradients() const;

  const Graph& graph_;
  const std::vector<OpTraits> traits_;  // By node.
  const Lists readers_, writers_, gradients_;
  std::vector<bool> pulled_;  // By value.
};

}  // namespace dt
