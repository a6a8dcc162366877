#include "common/plan/check_memory.h"

#include <algorithm>
#include <numeric>

#include "common/plan/pass_order.h"

namespace dt {
namespace {

class MemoryChecker {
 public:
  MemoryChecker(const Plan& plan, const GraphIndex& index)
      : plan_(plan), graph_(plan.graph), owner_(MemoryOwners(index)) {
    for (ValueIndex v = 0; v < owner_.size(); ++v) {
      // In another slot it is a copy.
      if (plan.slot[v] != plan.slot[owner_[v]]) owner_[v] = v;
    }
  }

  Status Run() const {
    DT_TRY_STATUS(KeptAlone());
    DT_TRY_STATUS(OneByOne(plan_.train, true));
    DT_TRY_STATUS(OneByOne(plan_.evaluate, false));
    for (const Phases& phases : {kSlices, kSlicesAndJoins, kSteps}) {
      DT_TRY_STATUS(AtAnySpeed(plan_.train, phases));
    }
    return AtAnySpeed(plan_.evaluate, kSlices);
  }

 private:
  template <class... Args>
  static Status Bad(fmt::format_string<Args...> format, Args&&... args) {
    return Internal("plan: {}", fmt::format(format, std::forward<Args>(args)...));
  }
  const std::string& NameOf(ValueIndex v) const { return graph_.value(v).name; }

  Status KeptAlone() const {
    const std::vector<bool> kept = KeptValues(graph_);
    std::vector<uint32_t> values(plan_.slot_count, 0);
    for (const uint32_t slot : plan_.slot) {
      if (slot != kNone) ++values[slot];
    }
    for (ValueIndex v = 0; v < kept.size(); ++v) {
      if (kept[v] && plan_.slot[v] != kNone && values[plan_.slot[v]] > 1) {
        return Bad("\"{}\" is read after the pass and shares its slot", NameOf(v));
      }
    }
    return OkStatus();
  }

  // Executes the pass with slots instead of memory.
  Status OneByOne(const std::vector<Subgraph>& pass, bool training) const {
    std::vector<ValueIndex> holds(plan_.slot_count, kNone);  // The owner of a slot's memory.
    std::vector<bool> ran(graph_.nodes.size(), false);
    for (const Subgraph& subgraph : pass) {
      for (const NodeIndex n : subgraph.nodes) {
        ran[n] = true;
        DT_TRY_STATUS(OneRun(graph_.nodes[n], holds));
      }
    }
    return AtEnd(training, ran, holds);
  }

  Status OneRun(const Node& node, std::vector<ValueIndex>& holds) const {
    for (const ValueIndex v : node.inputs) {
      const uint32_t slot = plan_.slot[v];
      if (slot != kNone && holds[slot] != owner_[v]) {
        return Bad("node \"{}\" reads \"{}\", which is not there", node.name, NameOf(v));
      }
    }
    for (const ValueIndex v : node.outputs) {
      for (const ValueIndex read : node.inputs) {
        if (plan_.slot[read] == plan_.slot[v] && owner_[read] != owner_[v]) {
          return Bad("node \"{}\" would overwrite its input \"{}\"", node.name, NameOf(read));
        }
      }
      holds[plan_.slot[v]] = owner_[v];
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

  // Outputs may be made for evaluations only.
  Status AtEnd(bool training, const std::vector<bool>& ran,
               const std::vector<ValueIndex>& holds) const {
    std::vector<bool> kept = KeptValues(graph_);
    if (!training) kept.assign(graph_.values.size(), false);
    for (const LossSpec& loss : graph_.losses) {
      const NodeIndex producer = graph_.value(loss.output).producer;
      kept[loss.output] = !training || (producer != kNone && ran[producer]);
    }
    for (ValueIndex v = 0; v < kept.size(); ++v) {
      if (!kept[v] || plan_.slot[v] == kNone) continue;
      if (holds[plan_.slot[v]] != v) {
        return Bad("\"{}\" is needed after the pass and is not there", NameOf(v));
      }
    }
    return OkStatus();
  }

  // Streams run in parallel. When a node begins, all users of the memory that it writes must have
  // ended.
  Status AtAnySpeed(const std::vector<Subgraph>& pass, const Phases& phases) const {
    const PassOrder order(pass, phases, graph_.nodes.size());
    std::vector<std::vector<NodeIndex>> uses(
        graph_.values.size());                                      // By owner; its producer first.
    std::vector<std::vector<ValueIndex>> owners(plan_.slot_count);  // By slot.
    const auto each_node = [&](const auto& body) {
      for (const Subgraph& subgraph : pass) {
        if (!phases.Has(subgraph.phase)) continue;
        for (const NodeIndex n : subgraph.nodes) body(n);
      }
    };
    each_node([&](NodeIndex n) {
      for (const ValueIndex v : graph_.nodes[n].outputs) {
        uses[owner_[v]].push_back(n);
        if (owner_[v] == v) owners[plan_.slot[v]].push_back(v);
      }
    });
    each_node([&](NodeIndex n) {
      for (const ValueIndex v : graph_.nodes[n].inputs) {
        // Other values were made before, or come from outside.
        if (!uses[owner_[v]].empty()) uses[owner_[v]].push_back(n);
      }
    });
    for (const std::vector<ValueIndex>& of_slot : owners) {
      DT_TRY_STATUS(TakeTurns(of_slot, uses, order));
    }
    return OkStatus();
  }

  Status TakeTurns(const std::vector<ValueIndex>& owners,
                   const std::vector<std::vector<NodeIndex>>& uses, const PassOrder& order) const {
    const auto ends_before = [&](ValueIndex a, ValueIndex b) {
      return std::ranges::all_of(uses[a], [&](NodeIndex n) { return order.Before(n, uses[b][0]); });
    };
    for (size_t i = 0; i < owners.size(); ++i) {
      for (size_t k = i + 1; k < owners.size(); ++k) {
        const ValueIndex a = owners[i], b = owners[k];
        if (graph_.value(a).device != graph_.value(b).device) {
          return Bad("\"{}\" and \"{}\" share a slot on two devices", NameOf(a), NameOf(b));
        }
        if (ends_before(a, b) || ends_before(b, a)) continue;
        return Bad("\"{}\" and \"{}\" share a slot at the same time", NameOf(a), NameOf(b));
      }
    }
    return OkStatus();
  }

  const Plan& plan_;
  const Graph& graph_;
  std::vector<ValueIndex> owner_;  // By value.
};

}  // namespace

std::vector<ValueIndex> MemoryOwners(const GraphIndex& index) {
  const Graph& graph = index.graph();
  const std::vector<bool> kept = KeptValues(graph);
  const auto may_share = [&](ValueIndex v) {
    const Value& value = graph.value(v);
    return value.kind == ValueKind::kNode && value.device == Device::kCpu && !kept[v] &&
           index.writers(v).empty();
  };
  std::vector<ValueIndex> owner(graph.values.size());
  std::iota(owner.begin(), owner.end(), ValueIndex{0});
  for (NodeIndex n = 0; n < graph.nodes.size(); ++n) {
    if (!index.traits(n).same_bytes) continue;
    const ValueIndex from = graph.nodes[n].inputs[0], to = graph.nodes[n].outputs[0];
    if (may_share(from) && may_share(to)) owner[to] = owner[from];
  }
  return owner;
}

Status CheckMemory(const Plan& plan, const GraphIndex& index) {
  return MemoryChecker(plan, index).Run();
}

}  // namespace dt
