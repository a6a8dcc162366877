#include "common/layout/layout_moves.h"

#include <algorithm>

namespace dt {
namespace {

using Kind = RedistributionKind;

void AppendAxes(AxisList& to, const AxisList& axes) {
  to.insert(to.end(), axes.begin(), axes.end());
}

void RemoveAxes(AxisList& from, const AxisList& axes) {
  std::erase_if(from, [&](AxisIndex a) { return std::ranges::count(axes, a) > 0; });
}

AxisList TakeInnermost(AxisList& from, size_t count) {
  const AxisList taken(from.end() - static_cast<ptrdiff_t>(count), from.end());
  from.resize(from.size() - count);
  return taken;
}

// Neither cuts a dimension nor is partial.
bool IsFree(const CutState& state, AxisIndex axis) {
  if (std::ranges::count(state.partial, axis) > 0) return false;
  return std::ranges::none_of(
      state.cuts, [&](const AxisList& axes) { return std::ranges::count(axes, axis) > 0; });
}

// Every set of some of these axes, in their order.
std::vector<AxisList> SetsOf(const AxisList& axes) {
  std::vector<AxisList> sets;
  for (uint32_t bits = 1; bits < (1U << axes.size()); ++bits) {
    sets.emplace_back();
    for (size_t i = 0; i < axes.size(); ++i) {
      if ((bits >> i & 1) != 0) sets.back().push_back(axes[i]);
    }
  }
  return sets;
}

}  // namespace

std::vector<LayoutMove> LayoutMoves::From(const CutState& state) const {
  std::vector<LayoutMove> moves;
  for (size_t d = 0; d < state.cuts.size(); ++d) AddSplit(state, d, moves);
  AddReductions(state, moves);
  if (all_to_all_) {
    for (size_t d = 0; d < state.cuts.size(); ++d) AddAllToAlls(state, d, moves);
  }
  for (size_t d = 0; d < state.cuts.size(); ++d) {
    for (size_t count = 1; count <= state.cuts[d].size(); ++count) {
      moves.push_back(Gather(state, d, count));
    }
  }
  return moves;
}

AxisList LayoutMoves::Pending(const CutState& state) const {
  AxisList pending = state.partial;
  RemoveAxes(pending, goal_.partial);
  return pending;
}

LayoutMove LayoutMoves::Gather(const CutState& state, size_t d, size_t count) const {
  LayoutMove move{.kind = Kind::kAllGather, .dim = d, .after = state};
  move.axes = TakeInnermost(move.after.cuts[d], count);
  // A device with the smallest part receives most.
  const double joined = Most(move.after.cuts[d], d);
  const std::vector<int64_t> parts =
      PartsOver(refinement_.matrix, move.axes, static_cast<int64_t>(joined));
  move.elements = joined - static_cast<double>(std::ranges::min(parts));
  for (size_t i = 0; i < state.cuts.size(); ++i) {
    if (i != d) move.elements *= Most(state.cuts[i], i);
  }
  return move;
}

LayoutMove LayoutMoves::Reduce(const CutState& state, const AxisList& axes) const {
  LayoutMove move{.kind = Kind::kAllReduce, .axes = axes, .after = state};
  RemoveAxes(move.after.partial, axes);
  move.elements = 2 * LocalOf(state) * ShareOfOthers(axes);
  return move;
}

void LayoutMoves::AddSplit(const CutState& state, size_t d, std::vector<LayoutMove>& moves) const {
  const AxisList &now = state.cuts[d], &goal = goal_.cuts[d];
  if (now.size() >= goal.size()) return;
  if (!std::equal(now.begin(), now.end(), goal.begin())) return;
  const AxisIndex next = goal[now.size()];
  if (!IsFree(state, next)) return;
  LayoutMove move{.kind = Kind::kSplit, .axes = {next}, .dim = d, .after = state};
  move.after.cuts[d].push_back(next);
  moves.push_back(std::move(move));
}

void LayoutMoves::AddAllToAlls(const CutState& state, size_t d,
                               std::vector<LayoutMove>& moves) const {
  for (size_t from = 0; from < state.cuts.size(); ++from) {
    for (size_t count = 1; from != d && count <= state.cuts[from].size(); ++count) {
      LayoutMove move{.kind = Kind::kAllToAll, .dim = d, .from_dim = from, .after = state};
      move.axes = TakeInnermost(move.after.cuts[from], count);
      if (!DividesAsOne(state, d, move.axes)) continue;
      AppendAxes(move.after.cuts[d], move.axes);
      move.elements = LocalOf(state) * ShareOfOthers(move.axes);
      moves.push_back(std::move(move));
    }
  }
}

void LayoutMoves::AddReductions(const CutState& state, std::vector<LayoutMove>& moves) const {
  for (const AxisList& axes : SetsOf(Pending(state))) {
    for (size_t d = 0; d < state.cuts.size(); ++d) {
      if (!DividesAsOne(state, d, axes)) continue;
      LayoutMove move{.kind = Kind::kReduceScatter, .axes = axes, .dim = d, .after = state};
      RemoveAxes(move.after.partial, axes);
      AppendAxes(move.after.cuts[d], axes);
      move.elements = LocalOf(state) * ShareOfOthers(axes);
      moves.push_back(std::move(move));
    }
    moves.push_back(Reduce(state, axes));
  }
}

bool LayoutMoves::DividesAsOne(const CutState& state, size_t d, const AxisList& axes) const {
  return dt::DividesAsOne(refinement_.matrix, {state.cuts[d], axes}, refinement_.shape[d]);
}

// The most positions of a dimension that a device has.
double LayoutMoves::Most(const AxisList& axes, size_t d) const {
  int64_t most = refinement_.shape[d];
  for (const AxisIndex axis : axes) most = EvenPart({0, most}, refinement_.matrix[axis], 0).size();
  return static_cast<double>(most);
}

double LayoutMoves::LocalOf(const CutState& state) const {
  double local = 1;
  for (size_t i = 0; i < state.cuts.size(); ++i) local *= Most(state.cuts[i], i);
  return local;
}

// (n - 1) / n for a group of n devices along these axes.
double LayoutMoves::ShareOfOthers(const AxisList& axes) const {
  double n = 1;
  for (const AxisIndex axis : axes) n *= refinement_.matrix[axis];
  return (n - 1) / n;
}

}  // namespace dt
