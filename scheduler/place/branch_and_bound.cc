#include "scheduler/place/branch_and_bound.h"

#include <algorithm>

#include "scheduler/place/predict.h"

namespace dt::scheduler {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr uint8_t kOpen = kPlaces;
// Sums in another order than the model's may be too large by this share.
constexpr double kRounding = 1e-9;

// A lower bound on the time of every completion of a partial placement. It is the larger of two:
//   - The step in which undecided items run as fast as they could, occupy no device and need no
//     copies. Removing work or a wait only makes every clock earlier, in rounded arithmetic too.
//   - Both devices busy all the time, with undecided groups divided between them in fractions: the
//     best division gives the CPU those that are relatively fastest there (continuous knapsack).
class Bound {
 public:
  explicit Bound(const Model& model)
      : model_(model),
        ends_(model.item_count()),
        arrivals_(model.value_count()),
        by_ratio_(model.free_groups()) {
    std::ranges::stable_sort(by_ratio_, {}, [&model](uint32_t g) {
      const PerPlace<double>& seconds = model.groups()[g].seconds;
      return seconds[1] > 0 ? seconds[0] / seconds[1] : (seconds[0] > 0 ? kNever : 0.0);
    });
  }

  // `places` is indexed by group; kOpen means undecided.
  double Of(const std::vector<uint8_t>& places) {
    return std::max(OfOrder(places), OfLoad(places) * (1 - kRounding));
  }

 private:
  double OfOrder(const std::vector<uint8_t>& places) {
    StepClocks clocks;
    double last = 0;
    for (uint32_t i = 0; i < model_.item_count(); ++i) {
      const uint8_t place = places[model_.group_of(i)];
      double& end = ends_[i];
      end = place == kOpen ? 0 : clocks.device[place];
      for (const uint32_t v : model_.inputs(i)) end = std::max(end, Arrival(places, v, place));
      end += place == kOpen ? std::min(model_.duration(i, 0), model_.duration(i, 1))
                            : model_.duration(i, place);
      if (place != kOpen) {
        clocks.device[place] = end;
        StartCopies(places, i, clocks);
      }
      last = std::max(last, end);
    }
    return last;
  }

  double Arrival(const std::vector<uint8_t>& places, uint32_t v, uint8_t place) const {
    const uint32_t maker = model_.value(v).from;
    const uint8_t from = places[model_.group_of(maker)];
    const bool copied = place != kOpen && from != kOpen && from != place;
    return copied ? arrivals_[v] : ends_[maker];
  }

  // Starts copies of those values of item `i` that a decided item reads at the other place.
  void StartCopies(const std::vector<uint8_t>& places, uint32_t i, StepClocks& clocks) {
    const uint8_t place = places[model_.group_of(i)];
    const uint8_t other = 1 - place;
    for (uint32_t v = model_.first_value(i); v < model_.first_value(i + 1); ++v) {
      const auto reads_there = [&](uint32_t r) { return places[model_.group_of(r)] == other; };
      if (std::ranges::none_of(model_.readers(v), reads_there)) continue;
      double& link = clocks.link[place];
      // Without overlap the reader's device makes the copy, at an unknown time, but not before
      // this.
      const double begin = model_.problem().overlap ? std::max(link, ends_[i]) : ends_[i];
      link = begin + model_.value(v).copy_seconds[place];
      arrivals_[v] = link;
    }
  }

  double OfLoad(const std::vector<uint8_t>& places) const {
    PerPlace<double> load = {};
    for (uint32_t g = 0; g < places.size(); ++g) {
      const uint8_t place = places[g];
      load[place == kOpen ? kOnAccelerator : place] +=
          model_.groups()[g].seconds[place == kOpen ? kOnAccelerator : place];
    }
    // All undecided groups are on the accelerator so far. Move those that are relatively fastest on
    // the CPU there, until both devices end together.
    for (const uint32_t g : by_ratio_) {
      if (places[g] != kOpen) continue;
      const PerPlace<double>& seconds = model_.groups()[g].seconds;
      if (load[0] + seconds[0] <= load[1] - seconds[1]) {
        load[0] += seconds[0];
        load[1] -= seconds[1];
        continue;
      }
      if (load[0] >= load[1]) break;
      const double share = (load[1] - load[0]) / (seconds[0] + seconds[1]);
      return load[0] + share * seconds[0];
    }
    return std::max(load[0], load[1]);
  }

  const Model& model_;
  std::vector<double> ends_;
  std::vector<double> arrivals_;  // Indexed by value, if copied: its arrival at the other place.
  std::vector<uint32_t> by_ratio_;
};

// A lower bound on the memory of every completion of a partial placement. A value is at the place
// of its item and wherever a decided item reads it. If neither is decided, it is at some place
// while it lives.
class MemoryBound {
 public:
  explicit MemoryBound(const Model& model) : model_(model), ends_(model.item_count()) {}

  // `places` is indexed by group. `kept`: bytes that decided groups keep at each place;
  // `open_kept`: the least that undecided groups keep.
  bool MayFit(const std::vector<uint8_t>& places, const PerPlace<double>& kept, double open_kept) {
    const PerPlace<double>& limit = model_.problem().memory_limit;
    std::ranges::fill(ends_, Alive{});
    Alive alive{kept, open_kept};
    for (uint32_t i = 0; i < model_.item_count(); ++i) {
      for (uint32_t v = model_.first_value(i); v < model_.first_value(i + 1); ++v) {
        Begin(places, v, alive);
      }
      for (uint8_t p = 0; p < kPlaces; ++p) {
        if (alive.at[p] > limit[p] * (1 + kRounding)) return false;
      }
      const double all = alive.at[0] + alive.at[1] + alive.somewhere;
      if (all > (limit[0] + limit[1]) * (1 + kRounding)) return false;
      for (uint8_t p = 0; p < kPlaces; ++p) alive.at[p] -= ends_[i].at[p];
      alive.somewhere -= ends_[i].somewhere;
    }
    return true;
  }

 private:
  struct Alive {
    PerPlace<double> at = {};
    double somewhere = 0;  // Bytes at a place that is not decided.
  };

  void Begin(const std::vector<uint8_t>& places, uint32_t v, Alive& alive) {
    const double bytes = model_.value(v).bytes;
    const uint32_t maker = model_.value(v).from;
    const std::span<const uint32_t> readers = model_.readers(v);
    PerPlace<uint32_t> last = {kNobody, kNobody};
    if (const uint8_t p = places[model_.group_of(maker)]; p != kOpen) last[p] = maker;
    for (const uint32_t r : readers) {
      if (const uint8_t p = places[model_.group_of(r)]; p != kOpen) last[p] = r;
    }
    uint32_t known_until = kNobody;
    for (uint8_t p = 0; p < kPlaces; ++p) {
      if (last[p] == kNobody) continue;
      alive.at[p] += bytes;
      ends_[last[p]].at[p] += bytes;
      known_until = known_until == kNobody ? last[p] : std::max(known_until, last[p]);
    }
    const uint32_t end = readers.empty() ? maker : readers.back();
    if (known_until == end) return;
    // The value is at an unknown place from its maker on, or after the last decided reader; in the
    // second case it stops counting at the known place there.
    if (known_until == kNobody) {
      alive.somewhere += bytes;
    } else {
      ends_[known_until].somewhere -= bytes;
    }
    ends_[end].somewhere += bytes;
  }

  static constexpr uint32_t kNobody = ~uint32_t{0};

  const Model& model_;
  std::vector<Alive> ends_;  // Indexed by item: bytes that are freed when it ends.
};

class BranchAndBound {
 public:
  BranchAndBound(const Model& model, uint64_t steps_max)
      : model_(model),
        steps_max_(steps_max),
        bound_(model),
        memory_(model),
        order_(model.free_groups()) {
    for (const Model::Group& group : model.groups()) {
      places_.push_back(group.forced.value_or(kOpen));
      if (group.forced.has_value()) {
        kept_[*group.forced] += group.memory[*group.forced];
      } else {
        open_least_ += std::min(group.memory[0], group.memory[1]);
      }
    }
    // Groups that matter most are decided first.
    std::ranges::stable_sort(order_, std::greater<>(), [&model](uint32_t g) {
      const PerPlace<double>& seconds = model.groups()[g].seconds;
      return std::max(seconds[0], seconds[1]);
    });
  }

  ExactResult Run(const Places& incumbent) {
    if (!incumbent.empty()) Offer(incumbent);
    const double root = MayFit() ? bound_.Of(places_) : kNever;
    if (steps_max_ > 0) {
      Explore(0, root);
    } else {
      Leave(root);
    }
    result_.proven = left_ == kNever || left_ >= result_.seconds;
    result_.lower_bound = std::min(left_, result_.seconds);
    return std::move(result_);
  }

 private:
  // `bound`: the bound of the decisions so far.
  void Explore(size_t depth, double bound) {
    if (bound >= result_.seconds) return;
    if (steps_ >= steps_max_) return Leave(bound);
    if (depth == order_.size()) {
      Places places(model_.item_count());
      for (uint32_t i = 0; i < places.size(); ++i) places[i] = places_[model_.group_of(i)];
      return Offer(places);
    }
    const uint32_t g = order_[depth];
    PerPlace<double> bounds;
    for (uint8_t p = 0; p < kPlaces; ++p) {
      Decide(g, p);
      bounds[p] = MayFit() ? std::max(bound, bound_.Of(places_)) : kNever;
      Undo(g, p);
    }
    steps_ += kPlaces * model_.item_count();
    const uint8_t first = bounds[1] < bounds[0] ? 1 : 0;
    for (const uint8_t p : {first, static_cast<uint8_t>(1 - first)}) {
      if (bounds[p] == kNever) continue;
      Decide(g, p);
      Explore(depth + 1, bounds[p]);
      Undo(g, p);
    }
  }

  void Decide(uint32_t group, uint8_t place) {
    const PerPlace<double>& memory = model_.groups()[group].memory;
    places_[group] = place;
    kept_[place] += memory[place];
    open_least_ -= std::min(memory[0], memory[1]);
  }
  void Undo(uint32_t group, uint8_t place) {
    const PerPlace<double>& memory = model_.groups()[group].memory;
    places_[group] = kOpen;
    kept_[place] -= memory[place];
    open_least_ += std::min(memory[0], memory[1]);
  }

  bool MayFit() {
    if (!model_.memory_matters()) return true;
    steps_ += model_.item_count();
    return memory_.MayFit(places_, kept_, open_least_);
  }

  void Offer(const Places& places) {
    const Prediction prediction = Predict(model_, places);
    steps_ += model_.item_count();
    if (!prediction.fits() || prediction.seconds >= result_.seconds) return;
    result_.seconds = prediction.seconds;
    result_.places = places;
  }

  // Leaves a part of the search tree unexplored.
  void Leave(double bound) { left_ = std::min(left_, bound); }

  const Model& model_;
  const uint64_t steps_max_;
  Bound bound_;
  MemoryBound memory_;
  std::vector<uint32_t> order_;
  std::vector<uint8_t> places_;  // Indexed by group.
  PerPlace<double> kept_ = {};
  double open_least_ = 0;  // The least that undecided groups keep, in bytes, wherever they go.
  ExactResult result_;
  double left_ = kNever;  // The least bound of the parts left unexplored.
  uint64_t steps_ = 0;
};

}  // namespace

ExactResult PlaceExactly(const Model& model, const Places& incumbent, uint64_t steps_max) {
  return BranchAndBound(model, steps_max).Run(incumbent);
}

}  // namespace dt::scheduler
