#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "scheduler/parallel/node_cut.h"

namespace dt::scheduler {
namespace {

class LayoutReader {
 public:
  LayoutReader(const Sharding& rule, const KnownLayouts& given)
      : rule_(rule),
        inputs_(given.inputs),
        outputs_(given.outputs),
        known_(rule.loops.size(), false) {
    held_.cut.loops.resize(rule.loops.size());
  }

  std::variant<HeldCut, CutProblem> Read() {
    if (auto problem = ReadTensors(rule_.inputs, inputs_, "input")) return *std::move(problem);
    if (auto problem = ReadTensors(rule_.outputs, outputs_, "output")) return *std::move(problem);
    if (auto problem = FindPartial()) return *std::move(problem);
    if (auto problem = CheckAxes()) return *std::move(problem);
    return held_;
  }

 private:
  std::optional<CutProblem> ReadTensors(const std::vector<ShardTensor>& rules,
                                        const std::vector<const Layout*>& layouts,
                                        std::string_view what) {
    for (size_t i = 0; i < layouts.size(); ++i) {
      if (layouts[i] == nullptr) continue;
      if (!any_) held_.cut.matrix = layouts[i]->matrix;
      any_ = true;
      if (layouts[i]->matrix != held_.cut.matrix) {
        return CutProblem{"agree", fmt::format("{} {} has another device matrix", what, i)};
      }
      for (size_t d = 0; d < rules[i].axes.size(); ++d) {
        auto problem = ReadDim(rules[i].axes[d], layouts[i]->dims[d]);
        if (!problem) continue;
        problem->what = fmt::format("dimension {} of {} {} {}", d, what, i, problem->what);
        return problem;
      }
    }
    return std::nullopt;
  }

  // The sentence of a problem begins after the dimension.
  std::optional<CutProblem> ReadDim(const ShardAxis& axis, const CutDim& dim) {
    if (axis.own) return std::nullopt;
    const bool cut = std::ranges::any_of(dim, [](const CutFactor& f) { return !f.axes.empty(); });
    if (axis.loops.empty()) {
      if (!cut) return std::nullopt;
      return CutProblem{"whole", "is cut, and every device needs all of it"};
    }
    const std::optional<std::vector<AxisList>> axes = AxesOf(axis, dim);
    if (!axes) return CutProblem{"whole", "has a cut that does not fall between its factors"};
    for (size_t f = 0; f < axis.loops.size(); ++f) {
      if (auto problem = SetLoop(axis.loops[f], (*axes)[f])) return problem;
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

  std::optional<CutProblem> SetLoop(LoopIndex loop, const AxisList& axes) {
    if (!axes.empty() && !rule_.loops[loop].cut) {
      return CutProblem{"whole", "is cut, and every device needs all of it"};
    }
    if (known_[loop] && held_.cut.loops[loop] != axes) {
      return CutProblem{"agree", "is not cut as the same dimension of another tensor"};
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
  const std::vector<const Layout*>&inputs_, &outputs_;
  bool any_ = false;         // A layout has been read.
  std::vector<bool> known_;  // By loop: whether a tensor has told its axes.
  HeldCut held_;
};

}  // namespace

std::variant<HeldCut, CutProblem> CutOfLayouts(const Sharding& rule, const KnownLayouts& known) {
  return LayoutReader(rule, known).Read();
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
