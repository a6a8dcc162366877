// One placement and what it costs, changed group by group: a change is run again only from the
// first item it touches, and given up as soon as it cannot be an improvement.
#pragma once

#include "scheduler/place/predict.h"

namespace dt::scheduler {

struct PlacementCost {
  double missing_bytes = 0;  // Over the limits: what counts first.
  double seconds = 0;
  double busy = 0;  // Of all devices and links together: what decides among equals.
};
// By more than rounding, as far as `busy` is concerned.
bool IsBetter(const PlacementCost& a, const PlacementCost& b);
PlacementCost CostOf(const Prediction& prediction);

// Owned by one thread. The model outlives it.
class Timeline {
 public:
  Timeline(const Model& model, Places places);

  const Places& places() const { return places_; }
  const PlacementCost& cost() const { return cost_; }
  // Moves each group to its other place and keeps that if it is better. REQUIRES: free groups, none
  // twice.
  bool TryFlip(std::span<const uint32_t> groups);
  // What it would cost; nothing changes.
  PlacementCost CostOfFlip(std::span<const uint32_t> groups);
  // Keeps it, whatever it costs.
  void Flip(std::span<const uint32_t> groups);
  // Items that were run so far: the measure of effort.
  uint64_t steps() const { return steps_; }

 private:
  void Turn(std::span<const uint32_t> groups);
  void TurnItem(uint32_t item);
  // Runs from first_ on. False as soon as the cost is not better than cost_.
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
  // Of the kept placement: before each item, and after the last.
  struct Moment {
    StepClocks clocks;
    double end = 0;  // Of the latest item so far.
  };
  std::vector<Moment> moments_, trial_moments_;
  Arrivals arrivals_;
  // Of the change at hand: equal to arrivals_ outside [first_, stop_), the items that were run
  // again.
  Arrivals trial_arrivals_;
  uint32_t first_ = 0, stop_ = 0;
  PlacementCost trial_;
};

}  // namespace dt::scheduler
