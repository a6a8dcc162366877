// Turns a graph into a placement problem of items, values and seconds, since scheduler/place knows
// no graphs.
//
//   inputs ─▶ weights, states ─▶ slice nodes, as streams take them ─▶ step nodes ─▶ results
//
// Inputs and pulled rows arrive on the CPU. Row gradients, losses and pushed values leave from it,
// and slices are summed there. These items, and weights, take no time. A worker's slices run one
// after the other, so the problem is one slice with its share of the step nodes.
// slices run one after the other, so the problem is one slice and its share of the step nodes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/graph/graph_index.h"
#include "common/profile/device_profile.h"
#include "scheduler/passes/placement/placement_constraints.h"
#include "scheduler/passes/placement/slice_costs.h"
#include "scheduler/place/problem.h"

namespace dt::scheduler {

struct GraphProblem {
  PlacementProblem problem;       // The memory limits are not set yet.
  std::vector<uint32_t> item_of;  // The item of each node.

  // The device of everything with this constraint, in the given placement.
  Device DeviceOf(const PlacementConstraint& constraint, const Places& places) const {
    if (constraint.device != Device::kAuto) return constraint.device;
    return places[item_of[constraint.root]] == kOnAccelerator ? Device::kGpu : Device::kCpu;
  }
};

struct ProblemOf {
  const GraphIndex& index;  // The graph before copies are inserted.
  const PlacementConstraints& constraints;
  const SliceCosts& costs;
  const DeviceProfile& profile;
  double step_share = 1;                             // A slice's share of the step nodes' time.
  std::span<const std::string> without_kernel = {};  // Operators that the accelerator cannot run.
};
GraphProblem MakeProblem(const ProblemOf& of);

}  // namespace dt::scheduler
