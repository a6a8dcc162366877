// Brings two layouts to one device matrix and one shape, so that every cut of one can be compared
// with every cut of the other.
#pragma once

#include <optional>
#include <vector>

#include "common/layout/layout.h"

namespace dt {

// By dimension: the axes that cut it, the outer one first.
using Cuts = std::vector<AxisList>;

struct Refinement {
  DeviceMatrix matrix;
  Shape shape;
  Cuts from, to;
  AxisList from_partial, to_partial;
};

// Axes and dimensions are divided at the boundaries that either side has: matrices (2, 6) and
// (4, 3) become (2, 2, 3); shapes [12, 5] and [3, 4, 5] become [3, 4, 5]. Nothing if a side's
// slices cannot be written so: if (3, 4) meets (4, 3), or a part that has to be divided is uneven.
// REQUIRES: equally many devices and elements; no given lengths of parts.
std::optional<Refinement> CommonRefinement(const ShapedLayout& from, const ShapedLayout& to);

// The layout with these cuts, all plain.
Layout PlainLayout(const DeviceMatrix& matrix, const Cuts& cuts);

// The lengths of the parts of n positions over these axes, one after the other.
std::vector<int64_t> PartsOver(const DeviceMatrix& matrix, const AxisList& axes, int64_t n);

// True if a group along the axes `next`, which divides evenly what the axes `before` leave of n
// positions, gives the same parts as these axes one after the other.
struct NextAxes {
  const AxisList &before, &next;
};
bool DividesAsOne(const DeviceMatrix& matrix, const NextAxes& axes, int64_t n);

}  // namespace dt
