// The memory plan. Two values share a slot if all nodes that touch the first have ended before the
// second is written, however fast the streams run, or if they are the same bytes (MemoryOwners).
#include <algorithm>

#include "common/plan/check_memory.h"
#include "common/plan/pass_order.h"
#include "ops/op_spec.h"
#include "scheduler/passes/lowering/lowering.h"

namespace dt::scheduler {
namespace {

// Indexed by owner of memory: the nodes of a pass that touch the memory, its producer first.
using Uses = std::vector<std::vector<NodeIndex>>;
Uses UsesIn(const Graph& graph, const std::vector<Subgraph>& pass,
            const std::vector<ValueIndex>& owner) {
  Uses uses(graph.values.size());
  for (const Subgraph& subgraph : pass) {
    for (const NodeIndex n : subgraph.nodes) {
      for (const ValueIndex v : graph.nodes[n].outputs) uses[owner[v]].push_back(n);
    }
  }
  for (const Subgraph& subgraph : pass) {
    for (const NodeIndex n : subgraph.nodes) {
      for (const ValueIndex v : graph.nodes[n].inputs) {
        if (!uses[owner[v]].empty()) uses[owner[v]].push_back(n);
      }
    }
  }
  return uses;
}

// Number of elements in a full slice. Ids and distinct keys have no known bound here; a guess is
// enough, because it only decides which free slot fits best.
double Capacity(const Plan& plan, const Value& value) {
  const double samples = std::max(1.0, plan.batch_size / std::max(1.0, double(plan.slices)));
  double elements = 1;
  for (const Dim& dim : value.shape) {
    elements *= static_cast<double>(dim.times) * (dim.symbol == kConstant ? 1.0 : samples);
  }
  return elements;
}

// Owners of a slot's memory follow one another in each pass, so the last one that a pass uses ends
// after all others; kNone: it uses none.
struct Slot {
  Device device = Device::kCpu;
  double capacity = 0;
  ValueIndex last_trained = kNone, last_evaluated = kNone;
};

// The uses of memory in one pass.
struct PassUses {
  PassUses(const Graph& graph, const std::vector<Subgraph>& pass,
           const std::vector<ValueIndex>& owner)
      : order(pass, kSlices, graph.nodes.size()), uses(UsesIn(graph, pass, owner)) {}
  bool Has(ValueIndex v) const { return !uses[v].empty(); }
  // All uses of `a` end before `b` is written, or one of the two is not in this pass.
  bool EndsBefore(ValueIndex a, ValueIndex b) const {
    if (a == kNone || !Has(a) || !Has(b)) return true;
    return std::ranges::all_of(uses[a],
                               [&](NodeIndex n) { return order.Before(n, uses[b].front()); });
  }
  const PassOrder order;
  const Uses uses;
};

class Allocator {
 public:
  explicit Allocator(Plan& plan)
      : plan_(plan),
        owner_(MemoryOwners(GraphIndex(plan.graph, TraitsOf))),
        train_(plan.graph, plan.train, owner_),
        evaluate_(plan.graph, plan.evaluate, owner_),
        kept_(KeptValues(plan.graph)) {}

  void Run() {
    plan_.slot.assign(plan_.graph.values.size(), kNone);
    for (const auto* pass : {&plan_.train, &plan_.evaluate}) {
      for (const Subgraph& subgraph : *pass) {
        for (const NodeIndex n : subgraph.nodes) {
          for (const ValueIndex v : plan_.graph.nodes[n].outputs) Assign(v, subgraph.phase);
        }
      }
    }
    for (ValueIndex v = 0; v < owner_.size(); ++v) plan_.slot[v] = plan_.slot[owner_[v]];
    plan_.slot_count = static_cast<uint32_t>(slots_.size());
  }

 private:
  void Assign(ValueIndex v, Phase phase) {
    if (owner_[v] != v || plan_.slot[v] != kNone) return;
    const double capacity = Capacity(plan_, plan_.graph.value(v));
    const bool alone = kept_[v] || phase != Phase::kSlice;
    size_t best = slots_.size();
    for (const size_t s : open_) {
      if (alone || slots_[s].device != plan_.graph.value(v).device || !IsFree(slots_[s], v)) {
        continue;
      }
      if (best == slots_.size() || Waste(slots_[s], capacity) < Waste(slots_[best], capacity)) {
        best = s;
      }
    }
    if (best == slots_.size()) {
      slots_.emplace_back();
      if (!alone) open_.push_back(best);
    }
    Slot& slot = slots_[best];
    slot.device = plan_.graph.value(v).device;
    slot.capacity = std::max(slot.capacity, capacity);
    if (train_.Has(v)) slot.last_trained = v;
    if (evaluate_.Has(v)) slot.last_evaluated = v;
    plan_.slot[v] = static_cast<uint32_t>(best);
  }

  bool IsFree(const Slot& slot, ValueIndex v) const {
    return train_.EndsBefore(slot.last_trained, v) && evaluate_.EndsBefore(slot.last_evaluated, v);
  }

  static double Waste(const Slot& slot, double capacity) {
    return slot.capacity > capacity ? slot.capacity - capacity : 2 * (capacity - slot.capacity);
  }

  Plan& plan_;
  const std::vector<ValueIndex> owner_;  // By value.
  const PassUses train_, evaluate_;
  const std::vector<bool> kept_;
  std::vector<Slot> slots_;
  std::vector<size_t> open_;  // Slots that hold no value that is read after the pass.
};

}  // namespace

void PlanMemory(Plan& plan) { Allocator(plan).Run(); }

}  // namespace dt::scheduler
