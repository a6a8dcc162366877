#include "scheduler/place/reasons.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/text.h"
#include "scheduler/place/timeline.h"

namespace dt::scheduler {
namespace {

constexpr size_t kLargestNamed = 3;

std::string Bytes(double bytes) { return BytesText(static_cast<uint64_t>(std::llround(bytes))); }

class Explainer {
 public:
  Explainer(const Model& model, const Places& places, uint64_t steps_max)
      : model_(model),
        names_(model.problem().place_names),
        steps_max_(steps_max),
        line_(model, places) {}

  std::string Reason(uint32_t item) {
    const uint32_t group = model_.group_of(item);
    if (model_.groups()[group].forced.has_value()) return WhyForced(model_.groups()[group], item);
    if (of_group_.empty()) of_group_.resize(model_.groups().size());
    if (of_group_[group].empty()) of_group_[group] = WhyNotOther(group);
    return of_group_[group];
  }

 private:
  // The reason of the group's first item with a tag, or else of the first without a kernel. For
  // other items of the group it names that item.
  std::string WhyForced(const Model::Group& group, uint32_t item) const {
    const uint8_t place = *group.forced;
    const auto& items = model_.problem().items;
    const auto tagged = [&](uint32_t i) { return items[i].fixed.has_value(); };
    const auto bound = [&](uint32_t i) { return items[i].seconds[1 - place] == kCannotRun; };
    auto decides = std::ranges::find_if(group.items, tagged);
    const bool by_tag = decides != group.items.end();
    if (!by_tag) decides = std::ranges::find_if(group.items, bound);
    DT_CHECK(decides != group.items.end());
    const bool itself = by_tag ? tagged(item) : bound(item);
    return fmt::format("{}{}", itself ? "" : fmt::format("with \"{}\": ", items[*decides].name),
                       by_tag ? fmt::format("tagged {}", names_[place])
                              : fmt::format("no kernel for {}", names_[1 - place]));
  }

  std::string WhyNotOther(uint32_t group) {
    const Model::Group& g = model_.groups()[group];
    const uint8_t other = 1 - line_.places()[g.items[0]];
    if (line_.steps() > steps_max_) {
      return fmt::format("by the search; it was not tried alone on {}", names_[other]);
    }
    const PlacementCost now = line_.cost(), then = line_.CostOfFlip({&group, 1});
    const std::string with =
        g.items.size() > 1 ? fmt::format(" with its group of {}", g.items.size()) : "";
    if (then.missing_bytes > now.missing_bytes) return WhatBreaks(g, other, with);
    const double more = then.seconds - now.seconds;
    if (more > 0) {
      return fmt::format("on {}{} the step would take {} longer", names_[other], with,
                         TimeText(more));
    }
    if (more < 0) {
      return fmt::format("on {}{} the step would take {} less; the search ended before it tried",
                         names_[other], with, TimeText(-more));
    }
    const double work = then.busy - now.busy;
    if (work > now.busy * 1e-9) {
      return fmt::format(
          "on {}{} the step would take as long, with {} more of computing or copying",
          names_[other], with, TimeText(work));
    }
    return fmt::format("on {}{} the step would take as long", names_[other], with);
  }

  // Says which memory is exceeded if the group moves to `to`.
  std::string WhatBreaks(const Model::Group& group, uint8_t to, std::string_view with) const {
    Places places = line_.places();
    for (const uint32_t i : group.items) places[i] = to;
    const Prediction then = Predict(model_, places);
    const PerPlace<double>& limit = model_.problem().memory_limit;
    // Nearly always `to` exceeds its limit; a copy back may exceed the other place's.
    const uint8_t p = then.memory(to) > limit[to] ? to : 1 - to;
    return fmt::format("on {}{} it does not fit: {} would need {}, {} more than it has", names_[to],
                       with, names_[p], Bytes(then.memory(p)), Bytes(then.memory(p) - limit[p]));
  }

  const Model& model_;
  const PerPlace<std::string>& names_;
  const uint64_t steps_max_;
  Timeline line_;
  std::vector<std::string> of_group_;
};

// The items that keep most memory at that place: "a" (3 GiB), "b" (1 GiB).
std::string LargestKept(const Model& model, const Places& places, uint8_t place) {
  std::vector<uint32_t> items;
  for (uint32_t i = 0; i < model.item_count(); ++i) {
    if (places[i] == place && model.problem().items[i].memory[place] > 0) items.push_back(i);
  }
  std::ranges::stable_sort(items, std::greater<>(),
                           [&](uint32_t i) { return model.problem().items[i].memory[place]; });
  if (items.size() > kLargestNamed) items.resize(kLargestNamed);
  std::vector<std::string> texts;
  for (const uint32_t i : items) {
    const PlacementProblem::Item& item = model.problem().items[i];
    texts.push_back(fmt::format("\"{}\" ({})", item.name, Bytes(item.memory[place])));
  }
  return JoinText(texts, ", ");
}

std::string Alternative(const Placement::Alternative& alternative) {
  const Prediction& p = alternative.prediction;
  return p.fits() ? fmt::format("{} {}", alternative.name, TimeText(p.seconds))
                  : fmt::format("{} does not fit", alternative.name);
}

std::string MemoryOf(const Model& model, const Prediction& prediction, uint8_t place) {
  const double limit = model.problem().memory_limit[place];
  const std::string of = limit < kNoLimit ? fmt::format(" of {}", Bytes(limit)) : "";
  return fmt::format("{} {}{}", model.problem().place_names[place], Bytes(prediction.memory(place)),
                     of);
}

}  // namespace

std::string TimeText(double seconds) {
  if (seconds >= 1) return fmt::format("{:.4g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.4g} ms", seconds * 1e3);
  return fmt::format("{:.4g} us", seconds * 1e6);
}

std::vector<std::string> ReasonsOf(const Model& model, const Places& places, uint64_t steps_max) {
  Explainer explainer(model, places, steps_max);
  std::vector<std::string> reasons;
  for (uint32_t i = 0; i < model.item_count(); ++i) reasons.push_back(explainer.Reason(i));
  return reasons;
}

std::string SummaryOf(const Model& model, const Placement& placement) {
  const auto& names = model.problem().place_names;
  const auto on_cpu = std::ranges::count(placement.places, kOnCpu);
  std::vector<std::string> alternatives;
  for (const auto& a : placement.alternatives) alternatives.push_back(Alternative(a));
  const std::string quality = placement.exact ? "no placement takes less"
                                              : fmt::format("no placement takes less than {}",
                                                            TimeText(placement.lower_bound));
  return fmt::format("{} items on {}, {} on {}: {} a step by the model, {}; {}; memory: {}, {}",
                     on_cpu, names[0], placement.places.size() - static_cast<size_t>(on_cpu),
                     names[1], TimeText(placement.prediction.seconds), quality,
                     JoinText(alternatives, ", "), MemoryOf(model, placement.prediction, 0),
                     MemoryOf(model, placement.prediction, 1));
}

Status DoesNotFit(const Model& model, const Places& nearest, bool proven) {
  const Prediction prediction = Predict(model, nearest);
  const auto& problem = model.problem();
  std::vector<std::string> lacks, largest;
  bool values_count = false;
  for (uint8_t p = 0; p < kPlaces; ++p) {
    const double missing = prediction.memory(p) - problem.memory_limit[p];
    if (missing <= 0) continue;
    lacks.push_back(fmt::format(
        "{} needs {} ({} kept for the job, {} of values while \"{}\" runs), {} more than its {}",
        problem.place_names[p], Bytes(prediction.memory(p)), Bytes(prediction.kept_bytes[p]),
        Bytes(prediction.peak_bytes[p]), problem.items[prediction.peak_item[p]].name,
        Bytes(missing), Bytes(problem.memory_limit[p])));
    const std::string kept = LargestKept(model, nearest, p);
    if (!kept.empty())
      largest.push_back(fmt::format("the largest on {}: {}", problem.place_names[p], kept));
    if (prediction.peak_bytes[p] >= missing) values_count = true;
  }
  std::vector<std::string> hints = largest;
  hints.push_back(values_count ? "a smaller batch, or more slices, needs less for values"
                               : "a smaller batch does not help enough");
  hints.push_back("what is tagged for a full device may be tagged for another, tables for ps");
  return WithHint(Invalid("{}: {}",
                          proven ? "no placement fits in memory"
                                 : "no placement was found that fits in memory; the nearest",
                          JoinText(lacks, "; ")),
                  JoinText(hints, "; "));
}

}  // namespace dt::scheduler
