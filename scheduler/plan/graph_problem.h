// A graph as a placement problem: what scheduler/place knows nothing of is turned into items,
// values and seconds here.
//
//   inputs ─▶ weights, states ─▶ slice nodes, as streams take them ─▶ step nodes ─▶ results
//
// Inputs, pulled rows among them, arrive on the processor; row gradients, losses and what is pushed
// leave from it, and slices are joined there. These items and weights take no time. A worker's
// slices run one after the other: the problem is one slice and a slice's share of the step nodes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/graph/graph_index.h"
#include "common/profile/device_profile.h"
#include "scheduler/place/problem.h"
#include "scheduler/plan/anchors.h"
#include "scheduler/plan/costs.h"

namespace dt::scheduler {

struct GraphProblem {
  PlacementProblem problem;       // Without limits of memory.
  std::vector<uint32_t> item_of;  // By node.

  // Where that placement puts what has this anchor.
  Device DeviceOf(const Anchor& anchor, const Places& places) const {
    if (anchor.device != Device::kAuto) return anchor.device;
    return places[item_of[anchor.root]] == kOnAccelerator ? Device::kGpu : Device::kCpu;
  }
};

struct ProblemOf {
  const GraphIndex& index;  // Of the graph before copies.
  const Anchors& anchors;
  const SliceCosts& costs;
  const DeviceProfile& profile;
  double step_share = 1;                             // Of the step nodes: 1 / slices of a worker.
  std::span<const std::string> without_kernel = {};  // Operators that the accelerator cannot run.
};
GraphProblem MakeProblem(const ProblemOf& of);

}  // namespace dt::scheduler
