#include "scheduler/place/search.h"

#include <algorithm>
#include <tuple>

#include "common/base/philox.h"
#include "scheduler/place/initial_placements.h"

namespace dt::scheduler {
namespace {

// A cut may visit at most 1 / kCutShare as many arcs as the search may take steps.
constexpr uint64_t kCutShare = 8;
// Number of starts that are improved; the others are only predicted.
constexpr uint32_t kDescents = 4;

class Search {
 public:
  Search(const Model& model, const SearchLimits& limits) : model_(model), limits_(limits) {}

  PlacementCost AddStart(const Places& places) {
    const PlacementCost cost = CostOf(Predict(model_, places));
    steps_ += model_.item_count();
    const auto same = [&](const Start& other) { return other.places == places; };
    if (std::ranges::none_of(starts_, same)) starts_.push_back({cost, places});
    return cost;
  }

  // Adds minimum cuts with one place made cheaper than it is, so that both places get work.
  void AddCuts() {
    for (const double cpu : {1.0, 0.5, 2.0, 0.25, 4.0, 0.1}) AddCut({.seconds = {cpu, 1}});
    if (model_.memory_matters()) {
      for (uint8_t p = 0; p < kPlaces; ++p) AddCutsThatFit(p);
    }
  }

  Places Run() {
    std::ranges::stable_sort(starts_, {}, [](const Start& s) {
      return std::tuple(s.cost.missing_bytes, s.cost.seconds, s.cost.busy);
    });
    best_ = starts_[0];
    const size_t descents = std::min<size_t>(starts_.size(), kDescents);
    for (size_t s = 0; s < descents; ++s) {
      Timeline line(model_, starts_[s].places);
      // Each start gets an equal share of the steps, and the restarts get one, too.
      Descend(line,
              steps_ + (limits_.steps - std::min(limits_.steps, steps_)) / (descents - s + 1));
      Keep(line);
    }
    for (uint32_t r = 0; r < limits_.restarts && steps_ < limits_.steps; ++r) {
      Timeline line(model_, best_.places);
      Disturb(line, r);
      Descend(line, limits_.steps);
      Keep(line);
    }
    return std::move(best_.places);
  }

 private:
  struct Start {
    PlacementCost cost;
    Places places;
  };

  void Keep(const Timeline& line) {
    if (IsBetter(line.cost(), best_.cost)) best_ = {line.cost(), line.places()};
  }

  std::optional<PlacementCost> AddCut(const CutWeights& weights) {
    const std::optional<Places> places =
        CutPlaces(model_, weights, limits_.steps / kCutShare + model_.item_count());
    if (!places.has_value()) return std::nullopt;
    return AddStart(*places);
  }

  // Bisects for the least price of a byte at `place` for which the cut fits in memory.
  void AddCutsThatFit(uint8_t place) {
    double seconds = 0, bytes = 1;
    for (const Model::Group& group : model_.groups()) {
      const double most = std::max(group.seconds[0], group.seconds[1]);
      if (most < kCannotRun) seconds += most;
      bytes += group.memory[place];
    }
    double low = 0, high = 16 * seconds / bytes;
    for (int i = 0; i < 6; ++i) {
      const double price = i == 0 ? high : (low + high) / 2;
      CutWeights weights;
      weights.byte[place] = price;
      const std::optional<PlacementCost> cost = AddCut(weights);
      if (!cost.has_value()) return;
      (cost->missing_bytes > 0 ? low : high) = price;
    }
  }

  bool Spent(const Timeline& line, uint64_t until) {
    steps_ += line.steps() - counted_;
    counted_ = line.steps();
    return steps_ >= until;
  }

  // Tries all kinds of moves until none improves, or `until` steps are done.
  void Descend(Timeline& line, uint64_t until) {
    counted_ = 0;
    bool improved = true;
    while (improved && !Spent(line, until)) {
      improved = TrySingles(line, until);
      improved = TryRuns(line, until) || improved;
      if (!improved) improved = TryPieces(line, until);
    }
    Spent(line, until);
  }

  bool TrySingles(Timeline& line, uint64_t until) {
    bool improved = false;
    for (const uint32_t g : model_.free_groups()) {
      if (Spent(line, until)) break;
      if (line.TryFlip({&g, 1})) improved = true;
    }
    return improved;
  }

  // In each run of 2, 4, 8, … consecutive free groups, moves those at one place to the other.
  bool TryRuns(Timeline& line, uint64_t until) {
    const std::vector<uint32_t>& free = model_.free_groups();
    bool improved = false;
    for (size_t length = 2; length / 2 < free.size(); length *= 2) {
      for (size_t begin = 0; begin < free.size(); begin += length / 2) {
        const size_t count = std::min(length, free.size() - begin);
        for (uint8_t from = 0; from < kPlaces && !Spent(line, until); ++from) {
          if (TryRun(line, std::span(free).subspan(begin, count), from)) improved = true;
        }
      }
    }
    return improved;
  }

  bool TryRun(Timeline& line, std::span<const uint32_t> run, uint8_t from) {
    move_.clear();
    for (const uint32_t g : run) {
      if (PlaceOf(line, g) == from) move_.push_back(g);
    }
    return move_.size() > 1 && line.TryFlip(move_);
  }

  // Moves each free group with its 3, 6, 12, … nearest connected groups at the same place.
  bool TryPieces(Timeline& line, uint64_t until) {
    bool improved = false;
    for (size_t size = 3; size / 2 < model_.free_groups().size(); size *= 2) {
      for (const uint32_t seed : model_.free_groups()) {
        if (Spent(line, until)) return improved;
        GrowPiece(line, seed, size);
        if (move_.size() > 1 && line.TryFlip(move_)) improved = true;
      }
      if (improved || size > kPieceMax) return improved;
    }
    return improved;
  }

  void GrowPiece(const Timeline& line, uint32_t seed, size_t size) {
    seen_.resize(model_.groups().size(), 0);
    const uint8_t place = PlaceOf(line, seed);
    move_ = {seed};
    seen_[seed] = ++mark_;
    for (size_t head = 0; head < move_.size(); ++head) {
      for (const uint32_t g : model_.neighbours(move_[head])) {
        if (move_.size() >= size) return;
        if (seen_[g] == mark_ || PlaceOf(line, g) != place) continue;
        seen_[g] = mark_;
        if (!model_.groups()[g].forced.has_value()) move_.push_back(g);
      }
    }
  }

  // Moves all free groups of one random range to their other places.
  void Disturb(Timeline& line, uint32_t restart) {
    const std::vector<uint32_t>& free = model_.free_groups();
    const PhiloxBlock draw = Philox(kStream, 0, restart);
    const size_t length = 1 + draw[0] % (1 + free.size() / 4);
    const size_t begin = draw[1] % (free.size() - length + 1);
    line.Flip(std::span(free).subspan(begin, length));
  }

  uint8_t PlaceOf(const Timeline& line, uint32_t group) const {
    return line.places()[model_.groups()[group].items[0]];
  }

  static constexpr uint64_t kStream = 20;
  static constexpr size_t kPieceMax = 200;

  const Model& model_;
  const SearchLimits limits_;
  std::vector<Start> starts_;
  Start best_;
  uint64_t steps_ = 0;
  uint64_t counted_ = 0;  // Steps of the current timeline that steps_ includes already.
  std::vector<uint32_t> move_;
  std::vector<uint64_t> seen_;  // Indexed by group: the mark of the last piece that reached it.
  uint64_t mark_ = 0;
};

}  // namespace

std::vector<Baseline> Baselines(const Model& model) {
  const auto& names = model.problem().place_names;
  std::vector<Baseline> all;
  all.push_back({"all " + names[0], model.AllAt(0), {}});
  all.push_back({"all " + names[1], model.AllAt(1), {}});
  all.push_back({"greedy", GreedyPlaces(model), {}});
  for (Baseline& baseline : all) baseline.prediction = Predict(model, baseline.places);
  return all;
}

Places SearchPlaces(const Model& model, const std::vector<Baseline>& baselines,
                    const SearchLimits& limits) {
  Search search(model, limits);
  for (const Baseline& baseline : baselines) search.AddStart(baseline.places);
  if (model.free_groups().empty()) return baselines[0].places;
  search.AddCuts();
  return search.Run();
}

}  // namespace dt::scheduler
