#include "scheduler/place/initial_placements.h"

#include <algorithm>
#include <cmath>

#include "scheduler/place/min_cut.h"
#include "scheduler/place/predict.h"

namespace dt::scheduler {
namespace {

class Greedy {
 public:
  explicit Greedy(const Model& model)
      : model_(model),
        places_(model.item_count()),
        done_(model.groups().size(), false),
        arrivals_(model.value_count(), {kNever, kNever}) {
    for (uint32_t g = 0; g < model.groups().size(); ++g) {
      if (model.groups()[g].forced.has_value()) Settle(g, *model.groups()[g].forced);
    }
  }

  Places Run() {
    for (uint32_t i = 0; i < model_.item_count(); ++i) {
      const uint32_t g = model_.group_of(i);
      if (!done_[g]) Settle(g, Choose(i));
      const uint8_t place = places_[i];
      clocks_ = After(i, place);
      for (uint32_t v = model_.first_value(i); v < model_.first_value(i + 1); ++v) {
        arrivals_[v][place] = clocks_.device[place];
      }
      KeepArrivals(i, place);
    }
    return std::move(places_);
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  void Settle(uint32_t group, uint8_t place) {
    done_[group] = true;
    kept_[place] += model_.groups()[group].memory[place];
    for (const uint32_t item : model_.groups()[group].items) places_[item] = place;
  }

  uint8_t Choose(uint32_t item) const {
    const Model::Group& group = model_.groups()[model_.group_of(item)];
    PerPlace<bool> fits;
    for (uint8_t p = 0; p < kPlaces; ++p) {
      fits[p] = kept_[p] + group.memory[p] <= model_.problem().memory_limit[p];
    }
    if (fits[0] != fits[1]) return fits[0] ? 0 : 1;
    return After(item, 0).device[0] <= After(item, 1).device[1] ? 0 : 1;
  }

  // The clocks if `item` ran at `place` now. Copies that it needs start when their values are made
  // and the link is free.
  StepClocks After(uint32_t item, uint8_t place) const {
    StepClocks clocks = clocks_;
    const uint8_t other = 1 - place;
    double ready = clocks.device[place];
    for (const uint32_t v : model_.inputs(item)) {
      double arrival = arrivals_[v][place];
      if (arrival == kNever) {
        arrival =
            std::max(clocks.link[other], arrivals_[v][other]) + model_.value(v).copy_seconds[other];
        clocks.link[other] = arrival;
      }
      ready = std::max(ready, arrival);
    }
    clocks.device[place] = ready + model_.duration(item, place);
    return clocks;
  }

  void KeepArrivals(uint32_t item, uint8_t place) {
    for (const uint32_t v : model_.inputs(item)) {
      double& arrival = arrivals_[v][place];
      if (arrival == kNever) arrival = clocks_.link[1 - place];
    }
  }

  const Model& model_;
  Places places_;
  std::vector<bool> done_;
  PerPlace<double> kept_ = {};
  StepClocks clocks_;
  Arrivals arrivals_;
};

// The flow network: nodes on the source's side of the cut are placed on the CPU.
class CutNetwork {
 public:
  CutNetwork(const Model& model, const CutWeights& weights) : model_(model), weights_(weights) {
    double most = 0;
    for (uint32_t g = 0; g < model.groups().size(); ++g) most += GroupCost(g, 0) + GroupCost(g, 1);
    for (uint32_t v = 0; v < model.value_count(); ++v) most += ValueCost(v, 0) + ValueCost(v, 1);
    scale_ = most > 0 ? 0x1p50 / most : 1;
    for (uint32_t g = 0; g < model.groups().size(); ++g) AddGroup(g);
    for (uint32_t v = 0; v < model.value_count(); ++v) AddValue(v);
  }

  std::optional<Places> Solve(uint64_t arcs_max) {
    const std::optional<std::vector<bool>> on_cpu = cut_.Solve(arcs_max);
    if (!on_cpu.has_value()) return std::nullopt;
    Places places(model_.item_count());
    for (uint32_t i = 0; i < model_.item_count(); ++i) {
      places[i] = (*on_cpu)[NodeOf(model_.group_of(i))] ? kOnCpu : kOnAccelerator;
    }
    return places;
  }

 private:
  static uint32_t NodeOf(uint32_t group) { return group + 2; }

  // 0 for a forced group, which is tied to its side of the cut.
  double GroupCost(uint32_t group, uint8_t place) const {
    const Model::Group& g = model_.groups()[group];
    if (g.forced.has_value()) return 0;
    double bytes = g.memory[place];
    if (weights_.byte[place] > 0) {
      for (const uint32_t i : g.items) bytes += BytesMade(i);
    }
    return g.seconds[place] * weights_.seconds[place] + bytes * weights_.byte[place];
  }

  double BytesMade(uint32_t item) const {
    double bytes = 0;
    for (uint32_t v = model_.first_value(item); v < model_.first_value(item + 1); ++v) {
      bytes += model_.value(v).bytes;
    }
    return bytes;
  }

  double ValueCost(uint32_t v, uint8_t from) const { return model_.value(v).copy_seconds[from]; }

  int64_t Capacity(double cost) const { return std::llround(cost * scale_); }

  void AddGroup(uint32_t group) {
    const uint32_t node = cut_.AddNode();
    const std::optional<uint8_t> forced = model_.groups()[group].forced;
    if (forced.has_value()) {
      const bool cpu = *forced == kOnCpu;
      cut_.AddArc(cpu ? MinCut::kSource : node, cpu ? node : MinCut::kSink, MinCut::kInfinite);
      return;
    }
    // A group cut off from the source is on the accelerator. The cost that both places share is
    // left out, since it is paid in any case.
    const int64_t cpu = Capacity(GroupCost(group, kOnCpu));
    const int64_t accelerator = Capacity(GroupCost(group, kOnAccelerator));
    if (accelerator > cpu) cut_.AddArc(MinCut::kSource, node, accelerator - cpu);
    if (cpu > accelerator) cut_.AddArc(node, MinCut::kSink, cpu - accelerator);
  }

  // A value is copied once however many items read it: its readers are joined by one node for each
  // direction.
  void AddValue(uint32_t v) {
    const uint32_t maker = NodeOf(model_.group_of(model_.value(v).from));
    std::vector<uint32_t> readers;
    for (const uint32_t item : model_.readers(v)) {
      const uint32_t node = NodeOf(model_.group_of(item));
      if (node != maker) readers.push_back(node);
    }
    std::ranges::sort(readers);
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    const int64_t down = Capacity(ValueCost(v, kOnCpu)),
                  up = Capacity(ValueCost(v, kOnAccelerator));
    if (readers.empty()) return;
    if (readers.size() == 1) {
      cut_.AddArc(maker, readers[0], down, up);
      return;
    }
    const uint32_t on_accelerator = cut_.AddNode(), on_cpu = cut_.AddNode();
    cut_.AddArc(maker, on_accelerator, down);
    cut_.AddArc(on_cpu, maker, up);
    for (const uint32_t reader : readers) {
      cut_.AddArc(on_accelerator, reader, MinCut::kInfinite);
      cut_.AddArc(reader, on_cpu, MinCut::kInfinite);
    }
  }

  const Model& model_;
  const CutWeights weights_;
  double scale_ = 1;  // Units of capacity for one second.
  MinCut cut_;
};

}  // namespace

Places GreedyPlaces(const Model& model) { return Greedy(model).Run(); }

std::optional<Places> CutPlaces(const Model& model, const CutWeights& weights, uint64_t arcs_max) {
  return CutNetwork(model, weights).Solve(arcs_max);
}

}  // namespace dt::scheduler
