#include "scheduler/place/model.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "common/base/check.h"

namespace dt::scheduler {
namespace {

bool IsAmount(double x) { return x >= 0; }  // False for NaN.
bool IsFiniteAmount(double x) { return IsAmount(x) && std::isfinite(x); }

void CheckProblem(const PlacementProblem& problem) {
  for (const PlacementProblem::Item& item : problem.items) {
    for (size_t p = 0; p < kPlaces; ++p) {
      DT_CHECK_MSG(IsAmount(item.seconds[p]) && IsFiniteAmount(item.memory[p]),
                   "{}: {} s, {} bytes", item.name, item.seconds[p], item.memory[p]);
    }
    DT_CHECK(!item.fixed.has_value() || *item.fixed < kPlaces);
  }
  for (const PlacementProblem::Edge& edge : problem.edges) {
    DT_CHECK_MSG(edge.from < edge.to && edge.to < problem.items.size(), "{} to {}", edge.from,
                 edge.to);
    DT_CHECK(IsFiniteAmount(edge.bytes));
  }
  for (size_t p = 0; p < kPlaces; ++p) {
    DT_CHECK(IsFiniteAmount(problem.launch[p]) && IsAmount(problem.memory_limit[p]));
    DT_CHECK(IsFiniteAmount(problem.away[p].latency) && problem.away[p].rate > 0);
  }
}

}  // namespace

Result<Model> Model::Make(PlacementProblem problem) {
  CheckProblem(problem);
  Model model;
  model.problem_ = std::move(problem);
  for (const PlacementProblem::Item& item : model.problem_.items) {
    PerPlace<double>& duration = model.durations_.emplace_back(item.seconds);
    for (size_t p = 0; p < kPlaces; ++p) {
      if (duration[p] > 0) duration[p] += model.problem_.launch[p];
    }
  }
  model.IndexValues();
  DT_TRY_STATUS(model.IndexGroups());
  model.FindTails();
  model.FindWhetherMemoryMatters();
  return model;
}

Places Model::AllAt(uint8_t place) const {
  Places places(item_count(), place);
  for (const Group& group : groups_) {
    for (const uint32_t item : group.items) places[item] = group.forced.value_or(place);
  }
  return places;
}

// Sorts the pairs into rows; each pair is listed once, in ascending order.
Model::Lists Model::ListsOf(size_t rows, std::vector<std::pair<uint32_t, uint32_t>> pairs) {
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  Lists lists;
  lists.begin.assign(rows + 1, 0);
  for (const auto& [row, item] : pairs) {
    ++lists.begin[row + 1];
    lists.items.push_back(item);
  }
  for (size_t row = 0; row < rows; ++row) lists.begin[row + 1] += lists.begin[row];
  return lists;
}

void Model::IndexValues() {
  std::map<std::pair<uint32_t, uint32_t>, double> bytes;  // Keys are (item, value number).
  for (const auto& edge : problem_.edges) {
    double& most = bytes[{edge.from, edge.value}];
    most = std::max(most, edge.bytes);
  }
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> index;
  first_value_.assign(problem_.items.size() + 1, 0);
  for (const auto& [key, size] : bytes) {
    index[key] = static_cast<uint32_t>(values_.size());
    Value& value = values_.emplace_back(Value{key.first, size, {}});
    for (size_t p = 0; p < kPlaces; ++p) {
      value.copy_seconds[p] = problem_.away[p].latency + size / problem_.away[p].rate;
    }
    ++first_value_[key.first + 1];
  }
  for (size_t i = 0; i < problem_.items.size(); ++i) first_value_[i + 1] += first_value_[i];
  std::vector<std::pair<uint32_t, uint32_t>> inputs, readers;
  for (const auto& edge : problem_.edges) {
    const uint32_t v = index[{edge.from, edge.value}];
    inputs.emplace_back(edge.to, v);
    readers.emplace_back(v, edge.to);
  }
  inputs_ = ListsOf(problem_.items.size(), std::move(inputs));
  readers_ = ListsOf(values_.size(), std::move(readers));
}

Status Model::IndexGroups() {
  std::map<uint32_t, uint32_t> group_numbers;
  for (uint32_t i = 0; i < item_count(); ++i) {
    const uint32_t name = problem_.items[i].group;
    auto number = static_cast<uint32_t>(groups_.size());
    if (name != kOwnGroup) number = group_numbers.try_emplace(name, number).first->second;
    if (number == groups_.size()) groups_.emplace_back();
    group_of_.push_back(number);
    Group& group = groups_[number];
    group.items.push_back(i);
    for (size_t p = 0; p < kPlaces; ++p) {
      group.seconds[p] += durations_[i][p];
      group.memory[p] += problem_.items[i].memory[p];
    }
  }
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    DT_TRY_STATUS(Force(groups_[g]));
    if (!groups_[g].forced.has_value()) free_groups_.push_back(g);
  }
  std::vector<std::pair<uint32_t, uint32_t>> neighbours;
  for (const auto& edge : problem_.edges) {
    const uint32_t a = group_of_[edge.from], b = group_of_[edge.to];
    if (a == b) continue;
    neighbours.emplace_back(a, b);
    neighbours.emplace_back(b, a);
  }
  neighbours_ = ListsOf(groups_.size(), std::move(neighbours));
  return OkStatus();
}

Status Model::Force(Group& group) const {
  const auto& names = problem_.place_names;
  PerPlace<const PlacementProblem::Item*> without = {};
  const PlacementProblem::Item* tagged = nullptr;
  for (const uint32_t i : group.items) {
    const PlacementProblem::Item& item = problem_.items[i];
    for (size_t p = 0; p < kPlaces; ++p) {
      if (item.seconds[p] == kCannotRun && without[p] == nullptr) without[p] = &item;
    }
    if (!item.fixed.has_value()) continue;
    if (tagged != nullptr && tagged->fixed != item.fixed) {
      return Invalid("\"{}\" is tagged {} and \"{}\" {}, but they go together", tagged->name,
                     names[*tagged->fixed], item.name, names[*item.fixed]);
    }
    tagged = &item;
  }
  if (without[0] != nullptr && without[0] == without[1]) {
    return Invalid("\"{}\" has no kernel, neither for {} nor for {}", without[0]->name, names[0],
                   names[1]);
  }
  if (without[0] != nullptr && without[1] != nullptr) {
    return Invalid("\"{}\" cannot run on {}, and \"{}\", which goes with it, not on {}",
                   without[0]->name, names[0], without[1]->name, names[1]);
  }
  if (tagged != nullptr) {
    group.forced = tagged->fixed;
    const PlacementProblem::Item* cannot = without[*tagged->fixed];
    if (cannot == nullptr) return OkStatus();
    if (cannot == tagged) {
      return Invalid("\"{}\" is tagged {}, and has no kernel for it", tagged->name,
                     names[*tagged->fixed]);
    }
    return Invalid("\"{}\" is tagged {}, but \"{}\" cannot run there", tagged->name,
                   names[*tagged->fixed], cannot->name);
  }
  if (without[0] != nullptr) group.forced = 1;
  if (without[1] != nullptr) group.forced = 0;
  return OkStatus();
}

void Model::FindTails() {
  tails_.assign(item_count(), 0);
  for (uint32_t i = item_count(); i-- > 0;) {
    const std::optional<uint8_t> forced = groups_[group_of_[i]].forced;
    const double least =
        forced.has_value() ? durations_[i][*forced] : std::min(durations_[i][0], durations_[i][1]);
    for (const uint32_t v : inputs(i)) {
      double& tail = tails_[values_[v].from];
      tail = std::max(tail, tails_[i] + least);
    }
  }
}

void Model::FindWhetherMemoryMatters() {
  double all_values = 0;
  for (const Value& value : values_) all_values += value.bytes;
  for (size_t p = 0; p < kPlaces; ++p) {
    double kept = 0;
    for (const auto& item : problem_.items) kept += item.memory[p];
    if (kept + all_values > problem_.memory_limit[p]) memory_matters_ = true;
  }
}

}  // namespace dt::scheduler
