#include "scheduler/place/timeline.h"

#include <algorithm>

namespace dt::scheduler {
namespace {

// Sums in different orders may differ by this share.
constexpr double kRounding = 1e-9;
// Measuring the memory of an item costs as much as running this many items.
constexpr uint64_t kMeasuringSteps = 3;
constexpr double kNoBound = std::numeric_limits<double>::infinity();

}  // namespace

bool IsBetter(const PlacementCost& a, const PlacementCost& b) {
  if (a.missing_bytes != b.missing_bytes) return a.missing_bytes < b.missing_bytes;
  if (a.seconds != b.seconds) return a.seconds < b.seconds;
  return a.busy < b.busy * (1 - 1e-9);
}

PlacementCost CostOf(const Prediction& prediction) {
  return {prediction.missing_bytes, prediction.seconds, prediction.busy()};
}

Timeline::Timeline(const Model& model, Places places)
    : model_(model),
      meter_(model),
      places_(std::move(places)),
      readers_(CountReaders(model, places_)),
      moments_(model.item_count() + 1),
      trial_moments_(moments_),
      arrivals_(model.value_count()),
      trial_arrivals_(arrivals_) {
  SumLoads();
  RunTrial(true);
  Commit();
}

void Timeline::SumLoads() {
  load_ = {};
  for (uint32_t i = 0; i < model_.item_count(); ++i) {
    load_[places_[i]] += model_.duration(i, places_[i]);
  }
}

bool Timeline::TryFlip(std::span<const uint32_t> groups) {
  Turn(groups);
  if (RunTrial(false)) {
    Commit();
    return true;
  }
  RollBack(groups);
  return false;
}

PlacementCost Timeline::CostOfFlip(std::span<const uint32_t> groups) {
  Turn(groups);
  RunTrial(true);
  RollBack(groups);
  return trial_;
}

void Timeline::Flip(std::span<const uint32_t> groups) {
  Turn(groups);
  RunTrial(true);
  Commit();
}

void Timeline::Turn(std::span<const uint32_t> groups) {
  first_ = model_.item_count();
  for (const uint32_t g : groups) {
    for (const uint32_t item : model_.groups()[g].items) TurnItem(item);
  }
  // Without overlap a later item may now make an earlier copy, so everything runs again.
  if (!model_.problem().overlap) first_ = 0;
  stop_ = first_;
}

void Timeline::TurnItem(uint32_t item) {
  const uint8_t from = places_[item], to = 1 - from;
  first_ = std::min(first_, item);
  for (const uint32_t v : model_.inputs(item)) {
    const uint32_t maker = model_.value(v).from;
    const bool last_there = --readers_[v][from] == 0 && places_[maker] != from;
    const bool first_here = ++readers_[v][to] == 1 && places_[maker] != to;
    if (last_there || first_here) first_ = std::min(first_, maker);
  }
  load_[from] -= model_.duration(item, from);
  load_[to] += model_.duration(item, to);
  places_[item] = to;
}

bool Timeline::RunTrial(bool at_any_cost) {
  trial_ = {};
  const bool weigh_memory = model_.memory_matters();
  const bool must_fit_better = weigh_memory && cost_.missing_bytes > 0;
  if (at_any_cost || must_fit_better) {
    if (weigh_memory) trial_.missing_bytes = MissingBytes();
    if (!at_any_cost && trial_.missing_bytes > cost_.missing_bytes) return false;
    RunItems(kNoBound);
    trial_.busy = Busy();
    return at_any_cost || IsBetter(trial_, cost_);
  }
  const double most = cost_.seconds * (1 + kRounding);
  if (load_[0] > most || load_[1] > most || !RunItems(most)) return false;
  if (trial_.seconds > cost_.seconds) return false;
  trial_.busy = Busy();
  if (!IsBetter(trial_, cost_)) return false;
  return !weigh_memory || MissingBytes() <= 0;
}

bool Timeline::RunItems(double seconds_max) {
  const StepRun run{model_, places_, readers_, trial_arrivals_};
  Moment now = moments_[first_];
  for (stop_ = first_; stop_ < model_.item_count();) {
    const uint32_t item = stop_++;
    const double end = run.RunItem(item, now.clocks);
    ++steps_;
    now.end = std::max(now.end, end);
    trial_moments_[item + 1] = now;
    if (end + model_.tail(item) > seconds_max) return false;
  }
  trial_.seconds = now.end;
  return true;
}

double Timeline::Busy() const {
  double busy = load_[0] + load_[1];
  for (uint32_t v = 0; v < model_.value_count(); ++v) {
    const uint8_t place = places_[model_.value(v).from];
    if (readers_[v][1 - place] > 0) busy += model_.value(v).copy_seconds[place];
  }
  return busy;
}

double Timeline::MissingBytes() {
  Prediction memory;
  meter_.Measure(places_, memory);
  steps_ += kMeasuringSteps * model_.item_count();
  return memory.missing_bytes;
}

void Timeline::Commit() {
  cost_ = trial_;
  SumLoads();  // Sums that are changed many times drift.
  std::copy(trial_moments_.begin() + first_ + 1, trial_moments_.end(),
            moments_.begin() + first_ + 1);
  const uint32_t v = model_.first_value(first_);
  std::copy(trial_arrivals_.begin() + v, trial_arrivals_.end(), arrivals_.begin() + v);
}

void Timeline::RollBack(std::span<const uint32_t> groups) {
  const uint32_t first = first_, stop = stop_;
  Turn(groups);
  const uint32_t begin = model_.first_value(first), end = model_.first_value(stop);
  std::copy(arrivals_.begin() + begin, arrivals_.begin() + end, trial_arrivals_.begin() + begin);
}

}  // namespace dt::scheduler
