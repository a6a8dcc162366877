// Joins nodes of a placed graph, for the parts of the pass `fuse`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/graph/graph_index.h"

namespace dt::scheduler {

// Nodes are changed and joined one after another, while index() and questions about readers answer
// for the graph as it was at first. Finish drops the joined nodes. One thread.
class GraphFuser {
 public:
  // `without_kernel`: operators that `gpu` has no kernel for; outlives the object.
  GraphFuser(Graph graph, std::span<const std::string> without_kernel);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  size_t size() const { return part_of_.size(); }
  Node& node(NodeIndex n) { return graph_.nodes[n]; }
  const Node& node(NodeIndex n) const { return graph_.nodes[n]; }
  NodeIndex producer(ValueIndex v) const { return graph_.value(v).producer; }

  // Whether `n` is a node `op` on the device, and in the phase and stage, of `other`.
  bool IsBeside(NodeIndex n, std::string_view op, const Node& other) const;
  // The nodes that read `v`; more than these refer to it if IsReported.
  std::span<const NodeIndex> readers(ValueIndex v) const { return index_.readers(v); }
  bool IsReported(ValueIndex v) const { return reported_[v]; }
  // Whether `reader` is all that refers to `v`.
  bool IsOnlyReader(ValueIndex v, NodeIndex reader) const;
  // The node `op` beside `node` that reads its output 0 as input 0, if nothing else refers to that;
  // else kNone.
  NodeIndex OnlyReader(const Node& node, std::string_view op) const;
  // The node `op` beside `node` that made its input `i`, if nothing else refers to that; else
  // kNone.
  NodeIndex OnlyMaker(NodeIndex n, size_t i, std::string_view op) const;
  // Whether `node` may become an `op`: its device has a kernel for it.
  bool MayBe(const Node& node, std::string_view op) const;

  // The work of `part` is done by `whole` from now on.
  void Join(NodeIndex part, NodeIndex whole) { part_of_[part] = whole; }
  bool IsJoined(NodeIndex n) const { return part_of_[n] != kNone; }

  // Drops joined nodes and the values that nothing makes any more, and infers the others' shapes.
  // Nodes and values get new numbers.
  Result<Graph> Finish() &&;

 private:
  NodeIndex WholeOf(NodeIndex n) const;
  std::vector<NodeIndex> DropParts();  // Returns the nodes that others were joined to.
  void DropValues();

  const Graph unfused_;
  const GraphIndex index_;
  Graph graph_;
  const std::span<const std::string> without_kernel_;
  std::vector<bool> reported_;      // Indexed by value: something other than a node refers to it.
  std::vector<NodeIndex> part_of_;  // Indexed by node: the node that it was joined to.
};

}  // namespace dt::scheduler
