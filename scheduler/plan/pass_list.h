// The planner's passes in their order, for a graph that is not divided over workers. A pass is a
// function from graph to graph that does not change the results of running the graph.
#pragma once

#include <span>
#include <string_view>

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

struct GraphPass {
  std::string_view name;
  Result<Graph> (*run)(Graph graph, const PlanRequest& request);
};
std::span<const GraphPass> GraphPasses();

// After this pass every value has its shape, and nodes are rewritten by parts.
inline constexpr std::string_view kInferPass = "infer";
// After this pass the graph is divided over the workers of a team.
inline constexpr std::string_view kDifferentiatePass = "differentiate";
// After this pass every node and value has its device.
inline constexpr std::string_view kPlacePass = "place";

}  // namespace dt::scheduler
