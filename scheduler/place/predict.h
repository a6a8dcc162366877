// Predicts one placement by the model of problem.h.
#pragma once

#include <algorithm>

#include "scheduler/place/model.h"

namespace dt::scheduler {

// REQUIRES: every item has a place, with a kernel for it.
Prediction Predict(const Model& model, const Places& places);

// Indexed by value: the time from which it is at each place.
using Arrivals = std::vector<PerPlace<double>>;
// Indexed by value: how many readers it has at each place.
using ReaderCounts = std::vector<PerPlace<uint32_t>>;
ReaderCounts CountReaders(const Model& model, const Places& places);

// When each device and each link becomes free; link[p] leads away from place p.
struct StepClocks {
  PerPlace<double> device = {}, link = {};
};

// Runs a step under the model, item by item. Holds references to its arguments.
struct StepRun {
  const Model& model;
  const Places& places;
  const ReaderCounts& readers;
  Arrivals& arrivals;  // One entry for each value; those of earlier items are filled in.

  // Runs the next item and starts the copies of its values. Returns the time at which it ends.
  double RunItem(uint32_t item, StepClocks& clocks) const {
    const uint8_t place = places[item];
    const uint8_t other = 1 - place;
    const bool overlap = model.problem().overlap;
    double& device = clocks.device[place];
    for (const uint32_t v : model.inputs(item)) {
      double& arrival = arrivals[v][place];
      if (arrival == kNotCopied) {
        arrival = std::max(device, arrivals[v][other]) + model.value(v).copy_seconds[other];
      }
      device = std::max(device, arrival);
    }
    device += model.duration(item, place);
    for (uint32_t v = model.first_value(item); v < model.first_value(item + 1); ++v) {
      arrivals[v][place] = device;
      arrivals[v][other] = kNotCopied;
      if (!overlap || readers[v][other] == 0) continue;
      double& link = clocks.link[place];
      link = std::max(link, device) + model.value(v).copy_seconds[place];
      arrivals[v][other] = link;
    }
    return device;
  }

  static constexpr double kNotCopied = -1;
};

// Measures kept and peak memory; it allocates once, so that it can be called often.
class MemoryMeter {
 public:
  explicit MemoryMeter(const Model& model);
  // Fills in kept_bytes, peak_bytes, peak_item and missing_bytes.
  void Measure(const Places& places, Prediction& out);

 private:
  // The last item that reads the value at that place; kNobody if none does.
  uint32_t LastReader(const Places& places, uint32_t v, uint8_t place) const;

  const Model& model_;
  std::vector<PerPlace<double>> ends_;  // Indexed by item: bytes that are freed when the item ends.
};

}  // namespace dt::scheduler
