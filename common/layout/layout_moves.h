// The moves of the search for a path between layouts, over one device matrix and one shape.
#pragma once

#include <vector>

#include "common/layout/redistribute.h"
#include "common/layout/refine.h"

namespace dt {

struct CutState {
  Cuts cuts;
  AxisList partial;
  friend auto operator<=>(const CutState&, const CutState&) = default;
};

struct LayoutMove {
  RedistributionKind kind = RedistributionKind::kSplit;
  AxisList axes;
  size_t dim = 0, from_dim = 0;
  double elements = 0;  // The cost, as in redistribute.h, of a device with the largest parts.
  CutState after;
};

class LayoutMoves {
 public:
  // The refinement outlives the moves.
  LayoutMoves(const Refinement& refinement, bool all_to_all)
      : refinement_(refinement),
        all_to_all_(all_to_all),
        goal_{refinement.to, refinement.to_partial} {}

  const CutState& goal() const { return goal_; }
  // All moves from a state, in a fixed order.
  std::vector<LayoutMove> From(const CutState& state) const;
  // The partial axes of a state that are not partial in the goal.
  AxisList Pending(const CutState& state) const;

  // Joins the innermost `count` axes of a dimension.
  LayoutMove Gather(const CutState& state, size_t d, size_t count) const;
  LayoutMove Reduce(const CutState& state, const AxisList& axes) const;
  // Divides dimension d by the next axis of the goal, if it has all axes before it, and no
  // dimension has that axis.
  void AddSplit(const CutState& state, size_t d, std::vector<LayoutMove>& moves) const;
  // Moves innermost axes of other dimensions to the innermost place of d.
  void AddAllToAlls(const CutState& state, size_t d, std::vector<LayoutMove>& moves) const;

 private:
  void AddReductions(const CutState& state, std::vector<LayoutMove>& moves) const;
  bool DividesAsOne(const CutState& state, size_t d, const AxisList& axes) const;
  double Most(const AxisList& axes, size_t d) const;
  double LocalOf(const CutState& state) const;
  double ShareOfOthers(const AxisList& axes) const;

  const Refinement& refinement_;
  const bool all_to_all_;
  const CutState goal_;
};

}  // namespace dt
