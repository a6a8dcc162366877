// Subgraphs. The slice nodes are cut by what they wait for and what waits for them: nodes that need
// no pulled rows, then those that the row gradients need, then the rest; so the first can run
// before a pull arrives and a push can leave before the last runs. No edge leads backwards over
// these cuts, so every connected piece of one of them is convex.
#include <algorithm>
#include <map>
#include <numeric>

#include "scheduler/plan/passes.h"

namespace dt::scheduler {
namespace {

enum class Wave : uint8_t { kBeforePull, kUntilPush, kAfterPush };

class Cutter {
 public:
  explicit Cutter(const Graph& graph)
      : graph_(graph), wave_(graph.nodes.size(), Wave::kBeforePull) {}

  void FindWaves() {
    std::vector<bool> needs_rows(graph_.nodes.size(), false);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueIndex v : graph_.nodes[n].inputs) {
        const NodeIndex from = graph_.value(v).producer;
        if (from == kNone ? IsRows(v) : needs_rows[from]) needs_rows[n] = true;
      }
    }
    std::vector<ValueIndex> pushed;
    for (const TableUse& table : graph_.tables) {
      if (table.row_grad != kNone) pushed.push_back(table.row_grad);
    }
    const std::vector<bool> for_push = AncestorsOf(pushed);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (needs_rows[n]) wave_[n] = for_push[n] ? Wave::kUntilPush : Wave::kAfterPush;
    }
    // A node without inputs runs with the first that reads it.
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      if (graph_.nodes[n].inputs.empty()) wave_[n] = FirstReader(n);
    }
  }

  // Nodes that the values depend on.
  std::vector<bool> AncestorsOf(const std::vector<ValueIndex>& values) const {
    std::vector<bool> found(graph_.nodes.size(), false);
    for (const ValueIndex v : values) {
      if (graph_.value(v).producer != kNone) found[graph_.value(v).producer] = true;
    }
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      if (!found[n]) continue;
      for (const ValueIndex v : graph_.nodes[n].inputs) {
        if (graph_.value(v).producer != kNone) found[graph_.value(v).producer] = true;
      }
    }
    return found;
  }

  // Connected pieces of the chosen slice nodes, wave after wave, each in graph order.
  std::vector<Subgraph> SliceSubgraphs(const std::vector<bool>& chosen) const {
    std::vector<Subgraph> all;
    for (const Wave wave : {Wave::kBeforePull, Wave::kUntilPush, Wave::kAfterPush}) {
      std::vector<NodeIndex> nodes;
      for (size_t n = 0; n < graph_.nodes.size(); ++n) {
        if (chosen[n] && graph_.nodes[n].phase == Phase::kSlice && wave_[n] == wave) {
          nodes.push_back(static_cast<NodeIndex>(n));
        }
      }
      for (Subgraph& piece : Pieces(nodes)) all.push_back(std::move(piece));
    }
    return all;
  }

  // One subgraph of all communication, then the connected pieces of the rest.
  std::vector<Subgraph> StepSubgraphs() const {
    Subgraph exchange;
    exchange.name = "exchange";
    exchange.phase = Phase::kStep;
    std::vector<NodeIndex> rest;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].phase != Phase::kStep) continue;
      auto& into = IsCommunication(graph_.nodes[n]) ? exchange.nodes : rest;
      into.push_back(static_cast<NodeIndex>(n));
    }
    std::vector<Subgraph> all;
    if (!exchange.nodes.empty()) all.push_back(std::move(exchange));
    for (Subgraph& piece : Pieces(rest)) all.push_back(std::move(piece));
    return all;
  }

 private:
  bool IsRows(ValueIndex v) const {
    return std::any_of(graph_.tables.begin(), graph_.tables.end(),
                       [v](const TableUse& table) { return table.rows == v; });
  }

  Wave FirstReader(size_t n) const {
    Wave first = Wave::kAfterPush;
    for (size_t reader = 0; reader < graph_.nodes.size(); ++reader) {
      for (const ValueIndex v : graph_.nodes[reader].inputs) {
        if (graph_.value(v).producer == n) first = std::min(first, wave_[reader]);
      }
    }
    return first;
  }

  // Weakly connected pieces of nodes of one device and stage, in the order of their first nodes.
  std::vector<Subgraph> Pieces(const std::vector<NodeIndex>& nodes) const {
    std::map<NodeIndex, NodeIndex> parent;
    for (const NodeIndex n : nodes) parent[n] = n;
    const auto root = [&parent](NodeIndex n) {
      while (parent[n] != n) n = parent[n] = parent[parent[n]];
      return n;
    };
    for (const NodeIndex n : nodes) {
      for (const ValueIndex v : graph_.nodes[n].inputs) {
        const NodeIndex from = graph_.value(v).producer;
        if (from == kNone || !parent.contains(from) || !SamePlace(n, from)) continue;
        const NodeIndex a = root(n), b = root(from);
        parent[std::max(a, b)] = std::min(a, b);
      }
    }
    std::map<NodeIndex, Subgraph> pieces;
    for (const NodeIndex n : nodes) {
      Subgraph& piece = pieces[root(n)];
      const Node& node = graph_.nodes[n];
      if (piece.nodes.empty()) piece = {node.name, node.device, node.phase, node.stage, {}};
      piece.nodes.push_back(n);
    }
    std::vector<Subgraph> list;
    for (auto& [first, piece] : pieces) list.push_back(std::move(piece));
    return list;
  }

  bool SamePlace(NodeIndex a, NodeIndex b) const {
    return graph_.nodes[a].device == graph_.nodes[b].device &&
           graph_.nodes[a].stage == graph_.nodes[b].stage;
  }

  const Graph& graph_;
  std::vector<Wave> wave_;
};

}  // namespace

Result<Graph> Place(Graph graph, const PlanRequest&) {
  for (Node& node : graph.nodes) {
    if (node.device == Device::kGpu) {
      return AboutNode(NotYet("device: gpu is not available yet; use cpu or auto"), node.name,
                       node.mark);
    }
    if (node.device == Device::kPs) {
      return AboutNode(NotYet("device: ps is for tables; on a node it is not available yet"),
                       node.name, node.mark);
    }
    node.device = Device::kCpu;
  }
  return graph;
}

void Partition(Plan& plan) {
  Cutter cutter(plan.graph);
  cutter.FindWaves();
  plan.train = cutter.SliceSubgraphs(std::vector<bool>(plan.graph.nodes.size(), true));
  for (Subgraph& step : cutter.StepSubgraphs()) plan.train.push_back(std::move(step));
  std::vector<ValueIndex> outputs;
  for (const LossSpec& loss : plan.graph.losses) outputs.push_back(loss.output);
  plan.evaluate = cutter.SliceSubgraphs(cutter.AncestorsOf(outputs));
}

}  // namespace dt::scheduler
