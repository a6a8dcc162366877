// Which items of a step run on the CPU and which on the accelerator: the problem as plain values.
// The planner makes one of a graph and turns the answer back; nothing here knows graphs, operators
// or devices.
//
// The model that predicts how long a step takes:
//   - Items stand in one topological order, and each device runs those placed on it in that order,
//     one after the other. An item takes `seconds` and, unless those are 0, the device's launch
//     overhead.
//   - An item starts when its device is free and every value it reads is at its place.
//   - A value read at the other place is copied there once, as soon as it is made; copies of one
//     direction run one after the other in the order of their items, beside the computing and
//     beside the other direction. Without `overlap`, the reading device makes the copy itself, just
//     before its first reader there.
//   - The step is over when the last item is: the makespan. Waiting for tables, other workers and
//     the next step's work are outside the model.
//   - Memory of a place: what its items keep for the whole job, plus the largest sum of values that
//     are alive there while any one item runs. A value lives at its item's place from that item to
//     its last reader there; at the other place from the same item (the copy has been asked for) to
//     its last reader there.
//
// This is list scheduling with a given order and communication delays (Graham 1969; Rayward-Smith
// 1987). The search starts from minimum cuts, which are the best placement if nothing overlapped
// (Stone 1977), and, for few items, ends with branch and bound.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace dt::scheduler {

inline constexpr size_t kPlaces = 2;
inline constexpr uint8_t kOnCpu = 0, kOnAccelerator = 1;
template <class T>
using PerPlace = std::array<T, kPlaces>;

// Seconds of an item at a place that has no kernel for it.
inline constexpr double kCannotRun = std::numeric_limits<double>::infinity();
inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();
inline constexpr uint32_t kOwnGroup = ~uint32_t{0};

struct PlacementProblem {
  struct Item {
    std::string name;
    PerPlace<double> seconds = {};  // Time at each place; 0 means no time and no launch either.
    std::optional<uint8_t> fixed;   // The user's tag.
    uint32_t group = kOwnGroup;     // Items of one group go to one place.
    // Bytes kept at each place for the whole job if the item is placed there.
    PerPlace<double> memory = {};
  };
  // `to` reads a value that `from` makes.
  struct Edge {
    uint32_t from = 0, to = 0;  // from < to.
    double bytes = 0;
    uint32_t value = 0;  // Edges with equal (from, value) are one value.
  };
  struct Link {
    double latency = 0;      // Seconds.
    double rate = kNoLimit;  // Bytes a second.
  };

  std::vector<Item> items;  // In the order in which each device runs its items.
  std::vector<Edge> edges;
  PerPlace<double> memory_limit = {kNoLimit, kNoLimit};
  PerPlace<Link> away;           // [p]: from place p to the other one.
  PerPlace<double> launch = {};  // Seconds of overhead for each item at that place.
  bool overlap = true;           // Copies run beside computing.
  PerPlace<std::string> place_names = {"cpu", "gpu"};
};

// The place of each item.
using Places = std::vector<uint8_t>;

struct Prediction {
  double seconds = 0;
  PerPlace<double> computing = {};  // Seconds that each device computes.
  PerPlace<double> copying = {};    // Seconds that copies away from each place take.
  PerPlace<double> copied_bytes = {};
  PerPlace<double> kept_bytes = {};   // Bytes kept for the whole job.
  PerPlace<double> peak_bytes = {};   // Largest sum of values in bytes, without kept_bytes.
  PerPlace<uint32_t> peak_item = {};  // The item that runs when the peak is reached.
  double missing_bytes = 0;           // Bytes over the limits, both places together.

  bool fits() const { return missing_bytes <= 0; }
  double memory(uint8_t place) const { return kept_bytes[place] + peak_bytes[place]; }
  // Seconds of work of all devices and links together.
  double busy() const { return computing[0] + computing[1] + copying[0] + copying[1]; }
};

}  // namespace dt::scheduler
