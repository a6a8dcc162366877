#include "common/plan/check_plan.h"

#include <algorithm>

#include "common/graph/graph_index.h"
#include "common/plan/check_memory.h"
#include "common/plan/pass_order.h"

namespace dt {
namespace {

class PlanChecker {
 public:
  // REQUIRES: CheckGraph accepts the plan's graph.
  PlanChecker(const Plan& plan, TraitsLookup traits_of)
      : plan_(plan), graph_(plan.graph), index_(plan.graph, traits_of) {}

  Status Run() const {
    DT_TRY_STATUS(Sizes());
    DT_TRY_STATUS(Columns());
    DT_TRY_STATUS(Devices());
    DT_TRY_STATUS(Groups());
    for (const auto* pass : {&plan_.train, &plan_.evaluate}) {
      for (uint32_t s = 0; s < pass->size(); ++s) DT_TRY_STATUS(OneSubgraph(*pass, s));
    }
    DT_TRY_STATUS(EveryNodeRuns());
    DT_TRY_STATUS(Pass(plan_.train, true));
    DT_TRY_STATUS(Pass(plan_.evaluate, false));
    // Only a step's last slice has joins between its subgraphs.
    for (const Phases& phases : {kSlices, kSlicesAndJoins, kSteps}) {
      DT_TRY_STATUS(Order(plan_.train, phases));
    }
    DT_TRY_STATUS(Order(plan_.evaluate, kSlices));
    return CheckMemory(plan_, index_);
  }

 private:
  template <class... Args>
  static Status Bad(fmt::format_string<Args...> format, Args&&... args) {
    return Internal("plan: {}", fmt::format(format, std::forward<Args>(args)...));
  }

  Status Sizes() const {
    if (plan_.batch_size == 0 || plan_.slices == 0) return Bad("batch size or slices are 0");
    if (plan_.position >= plan_.devices) return Bad("its position is not in the team");
    if (plan_.slot.size() != graph_.values.size()) return Bad("not every value has a slot entry");
    if (plan_.slot_count > graph_.values.size()) return Bad("more slots than values");
    for (size_t v = 0; v < plan_.slot.size(); ++v) {
      const bool is_node = graph_.values[v].kind == ValueKind::kNode;
      if (is_node ? plan_.slot[v] >= plan_.slot_count : plan_.slot[v] != kNone) {
        return Bad("value \"{}\" has slot {}", graph_.values[v].name, plan_.slot[v]);
      }
    }
    return OkStatus();
  }

  Status Columns() const {
    for (const InputSpec& input : graph_.inputs) {
      for (const uint32_t c : input.columns) {
        if (c >= plan_.columns.size()) return Bad("an input reads column {}, which is none", c);
        const ColumnSpec& column = plan_.columns[c];
        const bool keys = input.kind >= InputKind::kIds && input.kind <= InputKind::kKeys;
        if (column.is_keys() != keys || (keys && column.is_ragged())) {
          return Bad("an input reads column {} as what it does not hold", c);
        }
      }
      DT_TRY_STATUS(input.kind == InputKind::kKeys ? Keys(input) : Positions(input));
    }
    for (const LookupSpec& lookup : graph_.lookups) DT_TRY_STATUS(LookupColumns(lookup));
    for (const LossSpec& loss : graph_.losses) {
      if (loss.label != kNone && loss.label_column >= plan_.columns.size()) {
        return Bad("loss \"{}\" has no label", loss.name);
      }
      if (loss.group_column != kNone && !IsOneKey(loss.group_column)) {
        return Bad("loss \"{}\" groups by what is no column of one key", loss.name);
      }
    }
    return OkStatus();
  }

  bool IsOneKey(uint32_t column) const {
    if (column >= plan_.columns.size()) return false;
    return plan_.columns[column].is_keys() && plan_.columns[column].length == 1;
  }

  Status Keys(const InputSpec& input) const {
    const SymShape& shape = graph_.value(input.value).shape;
    const bool fits = shape.size() == 2 && shape[0] == Dim{kBatch, 1} && shape[1] == Const(2);
    if (fits && input.columns.size() == 1 && plan_.columns[input.columns[0]].length == 1) {
      return OkStatus();
    }
    return Bad("input \"{}\" reads other keys than its column holds",
               graph_.value(input.value).name);
  }

  // Ids or numbers side by side, some of which this worker has.
  Status Positions(const InputSpec& input) const {
    const bool ids = input.kind == InputKind::kIds || input.kind == InputKind::kIdWeights;
    if (!ids && input.kind != InputKind::kFloats) return OkStatus();
    int64_t length = 0;
    for (const uint32_t c : input.columns) length += plan_.columns[c].length;
    const SymShape& shape = graph_.value(input.value).shape;
    const bool fits = shape.size() == 2 && shape[0].symbol != kConstant && shape[0].times == 1 &&
                      shape[1].symbol == kConstant && shape[1].times >= 0 &&
                      int64_t{input.first} + shape[1].times <= length;
    const bool rows = !ids || input.rows.size() == 1 || std::ssize(input.rows) == length;
    if (fits && rows) return OkStatus();
    return Bad("input \"{}\" reads other positions than its columns hold",
               graph_.value(input.value).name);
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

  Status Groups() const {
    for (const GroupSpec& group : graph_.groups) {
      for (const uint32_t member : group.members) {
        if (member >= plan_.devices) return Bad("a group has worker {}, which is none", member);
      }
    }
    const auto exists = [this](const Node& node, const char* attr) {
      const auto found = node.attrs.find(attr);
      if (found == node.attrs.end()) return false;
      const auto* const group = std::get_if<int64_t>(&found->second);
      return group != nullptr && *group >= 0 && *group < std::ssize(graph_.groups);
    };
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!index_.Is(n, OpKind::kCommunication) || node.op == "sum_rows") continue;
      const bool joins = node.phase == Phase::kJoin;
      if (exists(node, "group") && (!joins || exists(node, "terms"))) continue;
      return Bad("node \"{}\" communicates with no group", node.name);
    }
    return OkStatus();
  }

  // The inputs of a node are on its own device; only copies read from another device.
  Status Devices() const {
    for (const Value& value : graph_.values) {
      if (value.device == Device::kCpu || value.device == Device::kGpu) continue;
      return Bad("value \"{}\" lies on no device", value.name);
    }
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const Device from = node.device == Device::kGpu ? Device::kCpu : Device::kGpu;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const bool far = index_.Is(n, OpKind::kCopy) && i == 0;
        if (graph_.value(node.inputs[i]).device == (far ? from : node.device)) continue;
        return Bad("node \"{}\" reads \"{}\" on the wrong device", node.name,
                   graph_.value(node.inputs[i]).name);
      }
      for (const ValueIndex v : node.outputs) {
        if (graph_.value(v).device != node.device) {
          return Bad("node \"{}\" writes \"{}\" on the wrong device", node.name,
                     graph_.value(v).name);
        }
      }
    }
    return OkStatus();
  }

  Status OneSubgraph(const std::vector<Subgraph>& pass, uint32_t index) const {
    const Subgraph& subgraph = pass[index];
    if (subgraph.nodes.empty()) return Bad("subgraph \"{}\" is empty", subgraph.name);
    for (const NodeIndex n : subgraph.nodes) {
      if (n >= graph_.nodes.size())
        return Bad("subgraph \"{}\" holds no node {}", subgraph.name, n);
      const Node& node = graph_.nodes[n];
      if (StreamOf(index_.traits(n).kind, node) != subgraph.stream ||
          node.phase != subgraph.phase || node.stage != subgraph.stage) {
        return Bad("node \"{}\" does not belong in subgraph \"{}\"", node.name, subgraph.name);
      }
    }
    for (const uint32_t w : subgraph.waits) {
      const bool can_wait = w < index && pass[w].stream != subgraph.stream &&
                            (pass[w].phase == subgraph.phase ||
                             (pass[w].phase == Phase::kSlice && subgraph.phase == Phase::kJoin));
      if (can_wait) continue;
      return Bad("subgraph \"{}\" waits for {}, which is none before it", subgraph.name, w);
    }
    if (!IsConvex(subgraph)) return Bad("subgraph \"{}\" is not convex", subgraph.name);
    return OkStatus();
  }

  Status EveryNodeRuns() const {
    std::vector<bool> runs(graph_.nodes.size(), false);
    for (const auto* pass : {&plan_.train, &plan_.evaluate}) {
      for (const Subgraph& subgraph : *pass) {
        for (const NodeIndex n : subgraph.nodes) runs[n] = true;
      }
    }
    const auto never = std::ranges::find(runs, false);
    return never == runs.end() ? OkStatus() : Bad("node {} never runs", never - runs.begin());
  }

  // Convex: no path leaves the subgraph and returns to it.
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

  Status Pass(const std::vector<Subgraph>& pass, bool training) const {
    std::vector<bool> ran(graph_.nodes.size(), false);
    bool steps = false;
    for (const Subgraph& subgraph : pass) {
      steps = steps || subgraph.phase == Phase::kStep;
      if (steps && subgraph.phase != Phase::kStep) {
        return Bad("subgraph \"{}\" stands after step nodes", subgraph.name);
      }
      if (!training && subgraph.phase != Phase::kSlice) return Bad("evaluation has step nodes");
      for (const NodeIndex n : subgraph.nodes) {
        if (ran[n]) return Bad("node \"{}\" runs twice", graph_.nodes[n].name);
        ran[n] = true;
      }
    }
    return OkStatus();
  }

  // Streams run in parallel, at any relative speed. When a node begins, the producers of its inputs
  // must have ended.
  Status Order(const std::vector<Subgraph>& pass, const Phases& phases) const {
    const PassOrder order(pass, phases, graph_.nodes.size());
    std::vector<std::vector<NodeIndex>> uses(graph_.values.size());  // The producer is first.
    std::array<bool, kStreams> has_rows = {};
    for (const Subgraph& subgraph : pass) {
      if (!phases.Has(subgraph.phase)) continue;
      bool& rows = has_rows[static_cast<size_t>(subgraph.stream)];
      rows = rows || subgraph.needs_rows;
      for (const NodeIndex n : subgraph.nodes) {
        for (const ValueIndex v : graph_.nodes[n].outputs) uses[v].insert(uses[v].begin(), n);
        for (const ValueIndex v : graph_.nodes[n].inputs) uses[v].push_back(n);
        if (rows || !index_.ReadsPulledRows(n)) continue;
        return Bad("\"{}\" waits for no rows", graph_.nodes[n].name);
      }
    }
    for (const Subgraph& subgraph : pass) {
      if (!phases.Has(subgraph.phase)) continue;
      for (const NodeIndex n : subgraph.nodes) DT_TRY_STATUS(WritesAlone(n, uses, order));
    }
    for (ValueIndex v = 0; v < uses.size(); ++v) {
      const NodeIndex producer = graph_.values[v].producer;
      if (uses[v].empty() || producer == kNone || !order.Runs(producer)) continue;
      for (size_t i = 1; i < uses[v].size(); ++i) {
        if (order.Before(producer, uses[v][i])) continue;
        return Bad("node \"{}\" may run before \"{}\"", graph_.nodes[uses[v][i]].name,
                   graph_.nodes[producer].name);
      }
    }
    return OkStatus();
  }

  // Every other user of a value that the node writes in place has ended before the node begins, or
  // begins after it has ended.
  Status WritesAlone(NodeIndex n, const std::vector<std::vector<NodeIndex>>& uses,
                     const PassOrder& order) const {
    const Node& node = graph_.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!index_.traits(n).writes.Has(i)) continue;
      for (const NodeIndex other : uses[node.inputs[i]]) {
        if (other == n || order.Before(n, other) || order.Before(other, n)) continue;
        return Bad("nodes \"{}\" and \"{}\" may use \"{}\" at the same time", node.name,
                   graph_.nodes[other].name, graph_.value(node.inputs[i]).name);
      }
    }
    return OkStatus();
  }

  const Plan& plan_;
  const Graph& graph_;
  const GraphIndex index_;
};

}  // namespace

Status CheckPlan(const Plan& plan, TraitsLookup traits_of) {
  DT_TRY_STATUS(CheckGraph(plan.graph));
  return PlanChecker(plan, traits_of).Run();
}

}  // namespace dt
