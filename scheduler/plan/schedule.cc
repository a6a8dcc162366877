// The memory plan: values whose lives do not overlap share a slot. A life reaches from the node
// that produces a value to the last that reads it, both included, in the order of the pass.
#include <algorithm>

#include "scheduler/plan/passes.h"

namespace dt::scheduler {
namespace {

struct Life {
  uint32_t born = kNone, last = 0;  // Positions in a pass; kNone: not part of it.
  bool Overlaps(const Life& other) const {
    if (born == kNone || other.born == kNone) return false;
    return born <= other.last && other.born <= last;
  }
};

std::vector<Life> LivesIn(const Graph& graph, const std::vector<Subgraph>& pass) {
  std::vector<Life> lives(graph.values.size());
  uint32_t position = 0;
  for (const Subgraph& subgraph : pass) {
    for (const NodeIndex n : subgraph.nodes) {
      for (const ValueIndex v : graph.nodes[n].inputs) lives[v].last = position;
      for (const ValueIndex v : graph.nodes[n].outputs) lives[v] = {position, position};
      ++position;
    }
  }
  return lives;
}

// Elements at the full size of a slice. Ids and distinct keys have no bound that is known here; a
// guess is enough, since it only decides which of several free slots fits best.
double Capacity(const Plan& plan, const Value& value) {
  const double samples = std::max(1.0, plan.batch_size / std::max(1.0, double(plan.slices)));
  double elements = 1;
  for (const Dim& dim : value.shape) {
    elements *= static_cast<double>(dim.times) * (dim.symbol == kConstant ? 1.0 : samples);
  }
  return elements;
}

struct Slot {
  double capacity = 0;
  std::vector<std::pair<Life, Life>> lives;
};

class Allocator {
 public:
  explicit Allocator(Plan& plan)
      : plan_(plan),
        train_(LivesIn(plan.graph, plan.train)),
        evaluate_(LivesIn(plan.graph, plan.evaluate)),
        kept_(KeptValues(plan.graph)) {}

  void Run() {
    plan_.slot.assign(plan_.graph.values.size(), kNone);
    for (const Subgraph& subgraph : plan_.train) {
      for (const NodeIndex n : subgraph.nodes) {
        for (const ValueIndex v : plan_.graph.nodes[n].outputs) Assign(v, subgraph.phase);
      }
    }
    plan_.slot_count = static_cast<uint32_t>(slots_.size());
  }

 private:
  void Assign(ValueIndex v, Phase phase) {
    const double capacity = Capacity(plan_, plan_.graph.value(v));
    const bool alone = kept_[v] || phase == Phase::kStep;
    size_t best = slots_.size();
    for (const size_t s : open_) {
      if (alone || !IsFree(slots_[s], v)) continue;
      if (best == slots_.size() || Waste(slots_[s], capacity) < Waste(slots_[best], capacity)) {
        best = s;
      }
    }
    if (best == slots_.size()) {
      slots_.emplace_back();
      if (!alone) open_.push_back(best);
    }
    Slot& slot = slots_[best];
    slot.capacity = std::max(slot.capacity, capacity);
    slot.lives.emplace_back(train_[v], evaluate_[v]);
    plan_.slot[v] = static_cast<uint32_t>(best);
  }

  bool IsFree(const Slot& slot, ValueIndex v) const {
    return std::none_of(slot.lives.begin(), slot.lives.end(), [&](const auto& lives) {
      return lives.first.Overlaps(train_[v]) || lives.second.Overlaps(evaluate_[v]);
    });
  }

  static double Waste(const Slot& slot, double capacity) {
    return slot.capacity > capacity ? slot.capacity - capacity : 2 * (capacity - slot.capacity);
  }

  Plan& plan_;
  const std::vector<Life> train_, evaluate_;
  const std::vector<bool> kept_;
  std::vector<Slot> slots_;
  std::vector<size_t> open_;  // Slots without a value that is read after the pass.
};

}  // namespace

void PlanMemory(Plan& plan) { Allocator(plan).Run(); }

}  // namespace dt::scheduler
