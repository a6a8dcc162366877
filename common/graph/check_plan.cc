#include <algorithm>

#include "common/graph/plan.h"

namespace dt {

bool IsCommunication(const Node& node) {
  return node.op == "sum_slices" || node.op == "gather_slices";
}

std::vector<bool> KeptValues(const Graph& graph) {
  std::vector<bool> kept(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::kStep) continue;
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

namespace {

class PlanChecker {
 public:
  explicit PlanChecker(const Plan& plan) : plan_(plan), graph_(plan.graph) {}

  Status Run() {
    DT_TRY_STATUS(CheckGraph(graph_));
    DT_TRY_STATUS(Sizes());
    DT_TRY_STATUS(Columns());
    for (const auto* pass : {&plan_.train, &plan_.evaluate}) {
      for (const Subgraph& subgraph : *pass) DT_TRY_STATUS(OneSubgraph(subgraph));
    }
    DT_TRY_STATUS(Pass(plan_.train, true));
    return Pass(plan_.evaluate, false);
  }

 private:
  template <class... Args>
  static Status Bad(fmt::format_string<Args...> format, Args&&... args) {
    return Internal("plan: {}", fmt::format(format, std::forward<Args>(args)...));
  }

  Status Sizes() const {
    if (plan_.batch_size == 0 || plan_.slices == 0) return Bad("batch size or slices are 0");
    if (plan_.slot.size() != graph_.values.size()) return Bad("not every value has a slot entry");
    if (plan_.slot_count > graph_.values.size()) return Bad("more slots than values");
    for (size_t v = 0; v < plan_.slot.size(); ++v) {
      const bool is_node = graph_.values[v].kind == ValueKind::kNode;
      if (is_node ? plan_.slot[v] >= plan_.slot_count : plan_.slot[v] != kNone) {
        return Bad("value \"{}\" has slot {}", graph_.values[v].name, plan_.slot[v]);
      }
    }
    return KeptAlone();
  }

  Status KeptAlone() const {
    const std::vector<bool> kept = KeptValues(graph_);
    std::vector<uint32_t> values(plan_.slot_count, 0);
    for (const uint32_t slot : plan_.slot) {
      if (slot != kNone) ++values[slot];
    }
    for (size_t v = 0; v < kept.size(); ++v) {
      if (kept[v] && plan_.slot[v] != kNone && values[plan_.slot[v]] > 1) {
        return Bad("\"{}\" is read after the pass and shares its slot", graph_.values[v].name);
      }
    }
    return OkStatus();
  }

  Status Columns() const {
    for (const InputSpec& input : graph_.inputs) {
      for (const uint32_t c : input.columns) {
        if (c >= plan_.columns.size()) return Bad("an input reads column {}, which is none", c);
        if (plan_.columns[c].is_keys()) return Bad("an input reads column {} as numbers", c);
      }
    }
    for (const LookupSpec& lookup : graph_.lookups) DT_TRY_STATUS(LookupColumns(lookup));
    for (const LossSpec& loss : graph_.losses) {
      if (loss.label_column >= plan_.columns.size())
        return Bad("loss \"{}\" has no label", loss.name);
    }
    return OkStatus();
  }

  Status LookupColumns(const LookupSpec& lookup) const {
    uint64_t length = 0;
    for (const uint32_t c : lookup.columns) {
      if (c >= plan_.columns.size() || !plan_.columns[c].is_keys()) {
        return Bad("lookup \"{}\" reads column {}, which has no keys", lookup.name, c);
      }
      if (plan_.columns[c].is_ragged() != (lookup.length == 0)) {
        return Bad("lookup \"{}\" and column {} disagree about varying length", lookup.name, c);
      }
      length += plan_.columns[c].length;
    }
    if (length != lookup.length) return Bad("lookup \"{}\" has a wrong length", lookup.name);
    return OkStatus();
  }

  Status OneSubgraph(const Subgraph& subgraph) const {
    if (subgraph.nodes.empty()) return Bad("subgraph \"{}\" is empty", subgraph.name);
    for (const NodeIndex n : subgraph.nodes) {
      if (n >= graph_.nodes.size())
        return Bad("subgraph \"{}\" holds no node {}", subgraph.name, n);
      const Node& node = graph_.nodes[n];
      if (node.device != subgraph.device || node.phase != subgraph.phase ||
          node.stage != subgraph.stage) {
        return Bad("node \"{}\" does not belong in subgraph \"{}\"", node.name, subgraph.name);
      }
    }
    if (subgraph.nodes.size() == 1) return OkStatus();
    const bool exchange =
        std::all_of(subgraph.nodes.begin(), subgraph.nodes.end(),
                    [this](NodeIndex n) { return IsCommunication(graph_.nodes[n]); });
    if (!exchange && !IsConnected(subgraph))
      return Bad("subgraph \"{}\" is not connected", subgraph.name);
    if (!IsConvex(subgraph)) return Bad("subgraph \"{}\" is not convex", subgraph.name);
    return OkStatus();
  }

  bool IsConnected(const Subgraph& subgraph) const {
    // Spreads a mark from the first node over edges in both directions until nothing changes.
    std::vector<uint8_t> state(graph_.nodes.size(), 0);  // 1: member, 2: reached.
    for (const NodeIndex n : subgraph.nodes) state[n] = 1;
    state[subgraph.nodes[0]] = 2;
    for (bool changed = true; changed;) {
      changed = false;
      for (const NodeIndex n : subgraph.nodes) changed = Spread(n, state) || changed;
    }
    return std::none_of(state.begin(), state.end(), [](uint8_t s) { return s == 1; });
  }

  bool Spread(NodeIndex n, std::vector<uint8_t>& state) const {
    bool changed = false;
    for (const ValueIndex v : graph_.nodes[n].inputs) {
      const NodeIndex from = graph_.values[v].producer;
      if (from == kNone || state[from] + state[n] != 3) continue;
      state[from] = state[n] = 2;
      changed = true;
    }
    return changed;
  }

  // No path leaves the subgraph and comes back.
  bool IsConvex(const Subgraph& subgraph) const {
    std::vector<bool> inside(graph_.nodes.size(), false), left(graph_.nodes.size(), false);
    for (const NodeIndex n : subgraph.nodes) inside[n] = true;
    const auto [first, last] = std::minmax_element(subgraph.nodes.begin(), subgraph.nodes.end());
    for (size_t n = *first; n <= *last; ++n) {
      bool after_leaving = false;
      for (const ValueIndex v : graph_.nodes[n].inputs) {
        const NodeIndex from = graph_.values[v].producer;
        if (from == kNone) continue;
        if (left[from] || (inside[from] && !inside[n])) after_leaving = true;
      }
      if (after_leaving && inside[n]) return false;
      left[n] = after_leaving;
    }
    return true;
  }

  // Runs the pass on slots instead of memory: whatever is read must still be there.
  Status Pass(const std::vector<Subgraph>& pass, bool training) const {
    std::vector<ValueIndex> holds(plan_.slot_count, kNone);
    std::vector<bool> ran(graph_.nodes.size(), false);
    Phase phase = Phase::kSlice;
    for (const Subgraph& subgraph : pass) {
      if (subgraph.phase < phase)
        return Bad("subgraph \"{}\" stands after step nodes", subgraph.name);
      if (!training && subgraph.phase != Phase::kSlice) return Bad("evaluation has step nodes");
      phase = subgraph.phase;
      for (const NodeIndex n : subgraph.nodes) {
        if (ran[n]) return Bad("node \"{}\" runs twice", graph_.nodes[n].name);
        ran[n] = true;
        DT_TRY_STATUS(OneRun(n, holds));
      }
    }
    if (training && std::find(ran.begin(), ran.end(), false) != ran.end()) {
      return Bad("node {} never runs", std::find(ran.begin(), ran.end(), false) - ran.begin());
    }
    return AtEnd(training, holds);
  }

  Status OneRun(NodeIndex n, std::vector<ValueIndex>& holds) const {
    const Node& node = graph_.nodes[n];
    for (const ValueIndex v : node.inputs) {
      const uint32_t slot = plan_.slot[v];
      if (slot != kNone && holds[slot] != v) {
        return Bad("node \"{}\" reads \"{}\", which is not there", node.name,
                   graph_.values[v].name);
      }
    }
    for (const ValueIndex v : node.outputs) {
      for (const ValueIndex read : node.inputs) {
        if (plan_.slot[read] == plan_.slot[v]) {
          return Bad("node \"{}\" would overwrite its input \"{}\"", node.name,
                     graph_.values[read].name);
        }
      }
      holds[plan_.slot[v]] = v;
    }
    return OutputsApart(node);
  }

  Status OutputsApart(const Node& node) const {
    for (size_t a = 0; a < node.outputs.size(); ++a) {
      for (size_t b = a + 1; b < node.outputs.size(); ++b) {
        if (plan_.slot[node.outputs[a]] == plan_.slot[node.outputs[b]]) {
          return Bad("two outputs of node \"{}\" share a slot", node.name);
        }
      }
    }
    return OkStatus();
  }

  Status AtEnd(bool training, const std::vector<ValueIndex>& holds) const {
    std::vector<bool> kept = KeptValues(graph_);
    if (!training) {
      kept.assign(graph_.values.size(), false);
      for (const LossSpec& loss : graph_.losses) kept[loss.output] = true;
    }
    for (size_t v = 0; v < kept.size(); ++v) {
      if (!kept[v] || plan_.slot[v] == kNone) continue;
      if (holds[plan_.slot[v]] != v) {
        return Bad("\"{}\" is needed after the pass and is not there", graph_.values[v].name);
      }
    }
    return OkStatus();
  }

  const Plan& plan_;
  const Graph& graph_;
};

}  // namespace

Status CheckPlan(const Plan& plan) { return PlanChecker(plan).Run(); }

}  // namespace dt
