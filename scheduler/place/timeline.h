// One placement and its cost, changed group by group. A change runs the step again only from the
// first item that it affects, and is given up as soon as it cannot be an improvement.
#pragma once

#include "scheduler/place/predict.h"

namespace dt::scheduler {

struct PlacementCost {
  double missing_bytes = 0;  // Bytes over the limits; compared first.
  double seconds = 0;
  double busy = 0;  // Seconds of work of all devices and links; compared last.
};
// Differences of `busy` count only if they exceed rounding.
bool IsBetter(const PlacementCost& a, const PlacementCost& b);
PlacementCost CostOf(const Prediction& prediction);

// Owned by one thread. REQUIRES: the model outlives it.
class Timeline {
 public:
  Timeline(const Model& model, Places places);

  const Places& places() const { return places_; }
  const PlacementCost& cost() const { return cost_; }
  // Moves each group to its other place and keeps the change if it is better. REQUIRES: all groups
  // are free, none is named twice.
  bool TryFlip(std::span<const uint32_t> groups);
  // The cost after such a move; changes nothing.
  PlacementCost CostOfFlip(std::span<const uint32_t> groups);
  // Makes the move, whatever it costs.
  void Flip(std::span<const uint32_t> groups);
  // Number of items run so far: the measure of effort.
  uint64_t steps() const { return steps_; }

 private:
  void Turn(std::span<const uint32_t> groups);
  void TurnItem(uint32_t item);
  // Runs the step from item first_ on. False as soon as the cost cannot be better than cost_.
  bool RunTrial(bool at_any_cost);
  bool RunItems(double seconds_max);
  void SumLoads();
  double Busy() const;
  double MissingBytes();
  void Commit();
  void RollBack(std::span<const uint32_t> groups);

  const Model& model_;
  MemoryMeter meter_;
  Places places_;
  ReaderCounts readers_;
  PerPlace<double> load_ = {};  // Seconds that each device computes.
  PlacementCost cost_;
  uint64_t steps_ = 0;
  // The state before each item and after the last, for the placement that is kept.
  struct Moment {
    StepClocks clocks;
    double end = 0;  // The end of the latest item so far.
  };
  std::vector<Moment> moments_, trial_moments_;
  Arrivals arrivals_;
  // Arrivals under the change that is tried. They equal arrivals_ outside [first_, stop_), the
  // items that were run again.
  Arrivals trial_arrivals_;
  uint32_t first_ = 0, stop_ = 0;
  PlacementCost trial_;
};

}  // namespace dt::scheduler
