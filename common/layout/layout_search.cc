#include "common/layout/layout_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <tuple>

#include "common/base/check.h"
#include "common/layout/layout_moves.h"

namespace dt {
namespace {

using Kind = RedistributionKind;

constexpr size_t kStatesMax = 20000;

LayoutPath PathOf(const Refinement& refinement, Join join, const std::vector<LayoutMove>& moves) {
  LayoutPath path;
  for (const LayoutMove& move : moves) {
    path.elements += move.elements;
    RedistributionStep step;
    step.kind = move.kind;
    step.axes = move.axes;
    step.dim = move.dim;
    step.from_dim = move.from_dim;
    step.after = PlainLayout(refinement.matrix, move.after.cuts);
    step.after.partial = move.after.partial;
    step.after.join = join;
    step.shape = refinement.shape;
    path.steps.push_back(std::move(step));
  }
  return path;
}

// Takes the first move that brings a dimension nearer to its goal.
class Greedy {
 public:
  Greedy(const LayoutMoves& moves, CutState state) : moves_(moves), state_(std::move(state)) {}

  std::vector<LayoutMove> Run() {
    const CutState& goal = moves_.goal();
    const AxisList pending = moves_.Pending(state_);
    if (!pending.empty()) Take(moves_.Reduce(state_, pending));
    while (state_.cuts != goal.cuts) {
      if (!Nearer()) JoinFirst();
    }
    return std::move(path_);
  }

 private:
  void Take(LayoutMove move) {
    state_ = move.after;
    path_.push_back(std::move(move));
  }

  // The number of axes that a dimension has as the goal has them.
  size_t Agreeing(const CutState& state, size_t d) const {
    const auto [now, goal] = std::ranges::mismatch(state.cuts[d], moves_.goal().cuts[d]);
    return static_cast<size_t>(now - state.cuts[d].begin());
  }

  bool Nearer() {
    for (size_t d = 0; d < state_.cuts.size(); ++d) {
      std::vector<LayoutMove> moves;
      moves_.AddSplit(state_, d, moves);
      moves_.AddAllToAlls(state_, d, moves);
      for (LayoutMove& move : moves) {
        const bool gains = Agreeing(move.after, d) == move.after.cuts[d].size();
        const bool loses = Agreeing(move.after, move.from_dim) < Agreeing(state_, move.from_dim);
        if (!gains || (loses && move.kind != Kind::kSplit)) continue;
        Take(std::move(move));
        return true;
      }
    }
    return false;
  }

  void JoinFirst() {
    for (size_t d = 0; d < state_.cuts.size(); ++d) {
      const size_t agreeing = Agreeing(state_, d);
      if (agreeing == state_.cuts[d].size()) continue;
      Take(moves_.Gather(state_, d, state_.cuts[d].size() - agreeing));
      return;
    }
    DT_UNREACHABLE();
  }

  const LayoutMoves& moves_;
  CutState state_;
  std::vector<LayoutMove> path_;
};

// Dijkstra's algorithm over states, by elements, then by the number of moves.
class Search {
 public:
  explicit Search(const LayoutMoves& moves) : moves_(moves) {}

  // Nothing if there is no path of fewer than `bound` elements, or none was found in time.
  std::optional<std::vector<LayoutMove>> Run(const CutState& start, double bound,
                                             size_t bound_moves) {
    nodes_.push_back({start, 0, 0, 0, {}});
    known_.emplace(start, 0);
    open_.emplace(0.0, 0, 0);
    while (!open_.empty() && nodes_.size() < kStatesMax) {
      const auto [elements, count, at] = open_.top();
      open_.pop();
      if (std::tuple(elements, count) >= std::tuple(bound, bound_moves)) return std::nullopt;
      if (elements > nodes_[at].elements || count > nodes_[at].moves) continue;
      if (nodes_[at].state == moves_.goal()) return PathTo(at);
      const CutState state = nodes_[at].state;
      for (LayoutMove& move : moves_.From(state)) Reach(at, std::move(move));
    }
    return std::nullopt;
  }

 private:
  struct Node {
    CutState state;
    double elements;
    size_t moves;
    size_t from;
    LayoutMove by;
  };

  void Reach(size_t from, LayoutMove move) {
    const double elements = nodes_[from].elements + move.elements;
    const size_t moves = nodes_[from].moves + 1;
    const auto [at, is_new] = known_.try_emplace(move.after, nodes_.size());
    if (is_new) {
      nodes_.push_back({move.after, elements, moves, from, move});
    } else {
      Node& node = nodes_[at->second];
      if (std::tuple(elements, moves) >= std::tuple(node.elements, node.moves)) return;
      node = {move.after, elements, moves, from, move};
    }
    open_.emplace(elements, moves, at->second);
  }

  std::vector<LayoutMove> PathTo(size_t at) const {
    std::vector<LayoutMove> path;
    for (; at != 0; at = nodes_[at].from) path.push_back(nodes_[at].by);
    std::ranges::reverse(path);
    return path;
  }

  using Open = std::tuple<double, size_t, size_t>;
  const LayoutMoves& moves_;
  std::vector<Node> nodes_;
  std::map<CutState, size_t> known_;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
};

}  // namespace

LayoutPath ShortestPath(const Refinement& refinement, Join join, bool all_to_all) {
  const LayoutMoves moves(refinement, all_to_all);
  const CutState start{refinement.from, refinement.from_partial};
  if (start == moves.goal()) return {};
  LayoutPath known = GatherAndSplit(refinement, join);
  if (all_to_all) {
    LayoutPath greedy = PathOf(refinement, join, Greedy(moves, start).Run());
    if (greedy.elements < known.elements) known = std::move(greedy);
  }
  const auto found = Search(moves).Run(start, known.elements, known.steps.size());
  return found ? PathOf(refinement, join, *found) : known;
}

LayoutPath GatherAndSplit(const Refinement& refinement, Join join) {
  const LayoutMoves moves(refinement, false);
  CutState state{refinement.from, refinement.from_partial};
  std::vector<LayoutMove> path;
  const auto take = [&](LayoutMove move) {
    state = move.after;
    path.push_back(std::move(move));
  };
  const AxisList pending = moves.Pending(state);
  if (!pending.empty()) take(moves.Reduce(state, pending));
  for (size_t d = 0; d < state.cuts.size(); ++d) {
    if (!state.cuts[d].empty()) take(moves.Gather(state, d, state.cuts[d].size()));
  }
  for (size_t d = 0; d < state.cuts.size(); ++d) {
    while (state.cuts[d] != refinement.to[d]) {
      std::vector<LayoutMove> splits;
      moves.AddSplit(state, d, splits);
      DT_CHECK(splits.size() == 1);
      take(std::move(splits[0]));
    }
  }
  return PathOf(refinement, join, path);
}

}  // namespace dt
