#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "scheduler/parallel/node_cut.h"

namespace dt::scheduler {
namespace {

class LayoutReader {
 public:
  LayoutReader(const Sharding& rule, const std::vector<const Layout*>& inputs)
      : rule_(rule), inputs_(inputs), known_(rule.loops.size(), false) {
    held_.cut.loops.resize(rule.loops.size());
  }

  std::variant<HeldCut, CutProblem> Read() {
    const auto first = std::ranges::find_if(inputs_, [](const Layout* l) { return l != nullptr; });
    held_.cut.matrix = (*first)->matrix;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i] == nullptr) continue;
      if (inputs_[i]->matrix != held_.cut.matrix) {
        return CutProblem{"agree", fmt::format("input {} has another device matrix", i)};
      }
      for (size_t d = 0; d < rule_.inputs[i].axes.size(); ++d) {
        if (auto problem = ReadDim(i, d)) return *std::move(problem);
      }
    }
    if (auto problem = FindPartial()) return *std::move(problem);
    if (auto problem = CheckAxes()) return *std::move(problem);
    return held_;
  }

 private:
  std::optional<CutProblem> ReadDim(size_t i, size_t d) {
    const ShardAxis& axis = rule_.inputs[i].axes[d];
    const CutDim& dim = inputs_[i]->dims[d];
    if (axis.own) return std::nullopt;
    const bool cut = std::ranges::any_of(dim, [](const CutFactor& f) { return !f.axes.empty(); });
    if (axis.loops.empty()) {
      if (!cut) return std::nullopt;
      return CutProblem{"whole", fmt::format("dimension {} of input {} is cut, and every device "
                                             "needs all of it",
                                             d, i)};
    }
    const std::optional<std::vector<AxisList>> axes = AxesOf(axis, dim);
    if (!axes) {
      return CutProblem{"whole",
                        fmt::format("the cut of dimension {} of input {} does not fall between its "
                                    "factors",
                                    d, i)};
    }
    for (size_t f = 0; f < axis.loops.size(); ++f) {
      if (auto problem = SetLoop(axis.loops[f], (*axes)[f], i, d)) return problem;
    }
    return std::nullopt;
  }

  // The axes of each loop of a dimension; nothing if the layout cuts within a loop of a product.
  std::optional<std::vector<AxisList>> AxesOf(const ShardAxis& axis, const CutDim& dim) const {
    std::vector<AxisList> axes(axis.loops.size());
    if (dim.empty()) return axes;
    if (dim.size() == axis.loops.size()) {
      for (size_t f = 0; f < dim.size(); ++f) {
        if (f > 0 && dim[f].size != rule_.loops[axis.loops[f]].extent.times) return std::nullopt;
        axes[f] = dim[f].axes;
      }
      return axes;
    }
    if (dim.size() > 1) return std::nullopt;
    size_t f = 0;
    int64_t left = ConstantExtent(axis.loops[0]);
    for (const AxisIndex a : dim[0].axes) {
      const int64_t size = held_.cut.matrix[a];
      while (left == 1 && f + 1 < axes.size()) left = ConstantExtent(axis.loops[++f]);
      if (left != 0 && left % size != 0) return std::nullopt;
      axes[f].push_back(a);
      left /= size;
    }
    return axes;
  }
  // 0 for a loop of varying length, which takes any cut.
  int64_t ConstantExtent(LoopIndex loop) const {
    const Dim& extent = rule_.loops[loop].extent;
    return extent.symbol == kConstant ? extent.times : 0;
  }

  std::optional<CutProblem> SetLoop(LoopIndex loop, const AxisList& axes, size_t i, size_t d) {
    if (!axes.empty() && !rule_.loops[loop].cut) {
      return CutProblem{"whole", fmt::format("dimension {} of input {} is cut, and every device "
                                             "needs all of it",
                                             d, i)};
    }
    if (known_[loop] && held_.cut.loops[loop] != axes) {
      return CutProblem{"agree", fmt::format("dimension {} of input {} is not cut as the same "
                                             "dimension of another input",
                                             d, i)};
    }
    known_[loop] = true;
    held_.cut.loops[loop] = axes;
    return std::nullopt;
  }

  std::optional<CutProblem> FindPartial() {
    std::optional<size_t> alone;
    size_t together = 0, partial_together = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Linear linear = rule_.inputs[i].linear;
      if (linear == Linear::kTogether) ++together;
      if (inputs_[i] == nullptr || inputs_[i]->partial.empty()) continue;
      if (inputs_[i]->join != Join::kSum || linear == Linear::kNo) {
        return CutProblem{"linear", fmt::format("input {} is a partial result, which the operator "
                                                "cannot take",
                                                i)};
      }
      if (alone || (partial_together > 0 && inputs_[i]->partial != held_.partial)) {
        return CutProblem{"linear", fmt::format("input {} is a partial result, and so is another "
                                                "input",
                                                i)};
      }
      held_.partial = inputs_[i]->partial;
      if (linear == Linear::kAlone) alone = i;
      if (linear == Linear::kTogether) ++partial_together;
    }
    if (partial_together > 0 && (alone || partial_together < together)) {
      return CutProblem{"linear", "some terms of a sum are partial results, and others are not"};
    }
    return std::nullopt;
  }

  std::optional<CutProblem> CheckAxes() const {
    std::vector<int> uses(held_.cut.matrix.size(), 0);
    for (const AxisIndex a : held_.partial) ++uses[a];
    for (const AxisList& axes : held_.cut.loops) {
      for (const AxisIndex a : axes) ++uses[a];
    }
    if (std::ranges::all_of(uses, [](int count) { return count <= 1; })) return std::nullopt;
    return CutProblem{"agree", "an axis of the device matrix cuts two different dimensions"};
  }

  const Sharding& rule_;
  const std::vector<const Layout*>& inputs_;
  std::vector<bool> known_;  // By loop: whether an input has told its axes.
  HeldCut held_;
};

}  // namespace

std::variant<HeldCut, CutProblem> CutOfLayouts(const Sharding& rule,
                                               const std::vector<const Layout*>& inputs) {
  return LayoutReader(rule, inputs).Read();
}

NodeLayouts LayoutsOf(const Sharding& rule, const HeldCut& held) {
  NodeLayouts layouts = LayoutsOf(rule, held.cut);
  for (Layout& output : layouts.outputs) {
    output.partial.insert(output.partial.end(), held.partial.begin(), held.partial.end());
    std::ranges::sort(output.partial);
  }
  return layouts;
}

}  // namespace dt::scheduler
