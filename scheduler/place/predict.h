// What the model of problem.h says of one placement.
#pragma once

#include <algorithm>

#include "scheduler/place/model.h"

namespace dt::scheduler {

// REQUIRES: a place for each item, where each has a kernel.
Prediction Predict(const Model& model, const Places& places);

// By value: when it is at each place.
using Arrivals = std::vector<PerPlace<double>>;
// By value: its readers at each place.
using ReaderCounts = std::vector<PerPlace<uint32_t>>;
ReaderCounts CountReaders(const Model& model, const Places& places);

// When each device and link is free; link[p] leads away from place p.
struct StepClocks {
  PerPlace<double> device = {}, link = {};
};

// The step under the model, item by item. Refers to what it is given.
struct StepRun {
  const Model& model;
  const Places& places;
  const ReaderCounts& readers;
  Arrivals& arrivals;  // One for each value; those of earlier items are filled in.

  // Runs the next item and starts the copies of its values. Returns when it ends.
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

// Sums and peaks of memory, again and again without allocating.
class MemoryMeter {
 public:
  explicit MemoryMeter(const Model& model);
  // Fills in kept_bytes, peak_bytes, peak_item and missing_bytes.
  void Measure(const Places& places, Prediction& out);

 private:
  // Of the value at that place; kNobody if none reads it there.
  uint32_t LastReader(const Places& places, uint32_t v, uint8_t place) const;

  const Model& model_;
  std::vector<PerPlace<double>> ends_;  // By item: bytes whose life ends with it.
};

}  // namespace dt::scheduler
