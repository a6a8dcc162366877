#include "test/unit/scheduler/place/random_problem.h"

#include <algorithm>

namespace dt::scheduler {
namespace {

class Draw {
 public:
  explicit Draw(uint64_t seed) : bits_(seed) {}
  double Between(double low, double high) {
    return low + (high - low) * static_cast<double>(bits_() >> 11) * 0x1p-53;
  }
  bool Chance(double p) { return Between(0, 1) < p; }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(bits_() % n); }

 private:
  std::mt19937_64 bits_;
};

PlacementProblem::Item DrawItem(uint32_t number, bool with_tags, Draw& draw) {
  PlacementProblem::Item item;
  item.name = "item" + std::to_string(number);
  // Some items have one of few different durations, so that there are ties.
  const double cpu = draw.Chance(0.3) ? 4e-5 : draw.Between(1e-6, 2e-4);
  item.seconds = {cpu, cpu / (draw.Chance(0.3) ? 4 : draw.Between(0.3, 12))};
  if (draw.Chance(0.1)) item.seconds = {0, 0};
  item.memory = {draw.Chance(0.4) ? double(draw.Below(1000)) : 0, 0};
  item.memory[1] = draw.Chance(0.8) ? item.memory[0] : item.memory[0] / 2;
  if (!with_tags) return item;
  if (draw.Chance(0.1)) item.fixed = static_cast<uint8_t>(draw.Below(2));
  const auto without = static_cast<uint8_t>(draw.Below(2));
  if (draw.Chance(0.08) && item.fixed != without) item.seconds[without] = kCannotRun;
  return item;
}

// The tag and the kernels of a group are those of its first item.
void DrawGroups(PlacementProblem& problem, Draw& draw) {
  const auto count = static_cast<uint32_t>(problem.items.size());
  for (uint32_t group = 0; group < count / 6; ++group) {
    PlacementProblem::Item& first = problem.items[draw.Below(count)];
    PlacementProblem::Item& second = problem.items[draw.Below(count)];
    if (first.group != kOwnGroup || second.group != kOwnGroup) continue;
    first.group = second.group = group;
    second.fixed = first.fixed;
    for (size_t p = 0; p < kPlaces; ++p) {
      const bool first_runs = first.seconds[p] < kCannotRun;
      if (!first_runs || second.seconds[p] == kCannotRun) second.seconds[p] = first.seconds[p];
    }
  }
}

}  // namespace

PlacementProblem DrawProblem(uint64_t seed, const RandomProblem& kind) {
  Draw draw(seed);
  PlacementProblem problem;
  problem.overlap = kind.overlap;
  for (uint32_t i = 0; i < kind.items; ++i) {
    problem.items.push_back(DrawItem(i, kind.with_tags, draw));
    const uint32_t edges = i == 0 ? 0 : draw.Below(3) + (draw.Chance(0.7) ? 1 : 0);
    // Most edges are short, some are long.
    const uint32_t reach = draw.Chance(0.7) ? std::min(i, 4u) : i;
    for (uint32_t e = 0; e < edges && reach > 0; ++e) {
      const uint32_t from = i - 1 - draw.Below(reach), value = draw.Chance(0.8) ? 0 : 1;
      problem.edges.push_back({from, i, 100.0 * (1 + (from * 7 + value * 3) % 13), value});
    }
  }
  if (kind.with_tags) DrawGroups(problem, draw);
  problem.launch = {draw.Between(0, 1e-6), draw.Between(0, 1e-5)};
  // The time of copies relative to that of computing.
  const double copying = draw.Between(0.05, 3);
  for (size_t p = 0; p < kPlaces; ++p) {
    problem.away[p] = {draw.Between(0, 1e-5), 1000 / (4e-5 * copying)};
  }
  if (!kind.with_limits) return problem;
  double kept = 0, values = 0;
  for (const auto& item : problem.items) kept += item.memory[0];
  for (const auto& edge : problem.edges) values += edge.bytes;
  values *= std::min(1.0, 4.0 / kind.items);  // About as much as is alive at the same time.
  for (size_t p = 0; p < kPlaces; ++p) {
    if (draw.Chance(0.7)) problem.memory_limit[p] = (kept + values) * draw.Between(0.25, 1);
  }
  return problem;
}

double LeastSeconds(const Model& model) {
  double least = std::numeric_limits<double>::infinity();
  ForEveryPlacement(model, [&](const Places& places) {
    const Prediction prediction = Predict(model, places);
    if (prediction.fits()) least = std::min(least, prediction.seconds);
  });
  return least;
}

}  // namespace dt::scheduler
