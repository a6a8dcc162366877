// The shortest path from one set of cuts to another over one device matrix and one shape.
#pragma once

#include <optional>
#include <vector>

#include "common/layout/redistribute.h"
#include "common/layout/refine.h"

namespace dt {

// A path of communications, with its cost in elements as in redistribute.h.
struct LayoutPath {
  std::vector<RedistributionStep> steps;
  double elements = 0;
};

// Moves: divide the next dimension that the goal divides; join the innermost axes of a dimension;
// move the innermost axes of one dimension to the innermost place of another; reduce partial axes,
// or reduce them into the innermost place of a dimension. The search is bounded. Beyond its bound
// the result is the path found by always taking the first move that brings a dimension nearer to
// its goal, in ascending order of dimensions, and, if there is none, by joining the first
// dimension that has another cut than its goal.
LayoutPath ShortestPath(const Refinement& refinement, Join join, bool all_to_all);

// Everything is joined, then divided again.
LayoutPath GatherAndSplit(const Refinement& refinement, Join join);

}  // namespace dt
