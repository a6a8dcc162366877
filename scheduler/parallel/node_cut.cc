#include "scheduler/parallel/node_cut.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "common/base/check.h"

namespace dt::scheduler {
namespace {

// The inner factors of a dimension must have a constant length, or their cuts could not be written
// as a layout.
bool HasConstantFactors(const Sharding& rule, const ShardAxis& axis) {
  return std::all_of(axis.loops.begin() + 1, axis.loops.end(),
                     [&](LoopIndex loop) { return rule.loops[loop].extent.symbol == kConstant; });
}

// A loop of varying length may be cut only if it runs over the samples.
bool MayCut(const Sharding& rule, LoopIndex loop) {
  const Dim& extent = rule.loops[loop].extent;
  const bool samples = extent == Dim{kBatch, 1};
  if (!rule.loops[loop].cut || (extent.symbol != kConstant && !samples)) return false;
  for (const auto* tensors : {&rule.inputs, &rule.outputs}) {
    for (const ShardTensor& tensor : *tensors) {
      for (const ShardAxis& axis : tensor.axes) {
        const bool has = std::ranges::count(axis.loops, loop) > 0;
        if (has && !axis.lists && !HasConstantFactors(rule, axis)) return false;
      }
    }
  }
  return true;
}

uint64_t ProductOf(const DimParts& parts) {
  return std::accumulate(parts.begin(), parts.end(), uint64_t{1}, std::multiplies<>());
}

// The axes of all loops that a tensor does not have, ascending.
AxisList OtherAxes(const ShardTensor& tensor, const NodeCut& cut) {
  AxisList axes;
  for (LoopIndex loop = 0; loop < cut.loops.size(); ++loop) {
    if (tensor.Has(loop)) continue;
    axes.insert(axes.end(), cut.loops[loop].begin(), cut.loops[loop].end());
  }
  std::ranges::sort(axes);
  return axes;
}

// Lists of known lengths: each device has those of its positions of the loop.
CutDim ListsOf(const ShardLoop& of, const NodeCut& cut, LoopIndex loop) {
  const AxisList& axes = cut.loops[loop];
  if (axes.empty()) return {};
  DT_CHECK(axes.size() == 1);  // As strategies cut loops.
  const uint32_t devices = cut.matrix[axes[0]];
  CutFactor factor{.axes = axes};
  for (uint32_t i = 0; i < devices; ++i) {
    const Range part = EvenPart({0, std::ssize(of.lists)}, devices, i);
    factor.parts.push_back(
        std::accumulate(of.lists.begin() + part.begin, of.lists.begin() + part.end, int64_t{0}));
  }
  return {factor};
}

CutDim DimOf(const Sharding& rule, const ShardTensor& tensor, const ShardAxis& axis,
             const NodeCut& cut) {
  CutDim dim;
  if (axis.own) {
    const AxisList axes = OtherAxes(tensor, cut);
    if (!axes.empty()) dim.push_back({.axes = axes});
    return dim;
  }
  for (const LoopIndex loop : axis.loops) {
    const bool outer = dim.empty();
    if (axis.lists && !rule.loops[loop].lists.empty()) return ListsOf(rule.loops[loop], cut, loop);
    dim.push_back({.size = outer ? 0 : rule.loops[loop].extent.times, .axes = cut.loops[loop]});
  }
  const bool whole = std::ranges::all_of(dim, [](const CutFactor& f) { return f.axes.empty(); });
  return whole ? CutDim() : dim;
}

Layout LayoutOf(const Sharding& rule, const ShardTensor& tensor, const NodeCut& cut) {
  Layout layout;
  layout.matrix = cut.matrix;
  for (const ShardAxis& axis : tensor.axes) layout.dims.push_back(DimOf(rule, tensor, axis, cut));
  return layout;
}

// Reads the strategy into parts of loops.
class StrategyReader {
 public:
  StrategyReader(const Sharding& rule, const Strategy& strategy)
      : rule_(rule), strategy_(strategy), parts_(rule.loops.size(), 0) {}

  std::optional<CutProblem> Read() {
    if (strategy_.size() > rule_.inputs.size()) {
      return CutProblem{"inputs", fmt::format("it names {} inputs, and the node has {}",
                                              strategy_.size(), rule_.inputs.size())};
    }
    for (size_t i = 0; i < strategy_.size(); ++i) {
      if (auto problem = ReadInput(i)) return problem;
    }
    for (uint32_t& parts : parts_) parts = std::max(parts, 1U);
    return std::nullopt;
  }
  const std::vector<uint32_t>& parts() const { return parts_; }

 private:
  std::optional<CutProblem> ReadInput(size_t i) {
    const ShardTensor& tensor = rule_.inputs[i];
    if (strategy_[i].size() != tensor.axes.size()) {
      return CutProblem{"dimensions", fmt::format("it cuts {} dimensions of input {}, which has {}",
                                                  strategy_[i].size(), i, tensor.axes.size())};
    }
    for (size_t d = 0; d < tensor.axes.size(); ++d) {
      if (auto problem = ReadDim(i, d)) return problem;
    }
    return std::nullopt;
  }

  std::optional<CutProblem> ReadDim(size_t i, size_t d) {
    const ShardAxis& axis = rule_.inputs[i].axes[d];
    const DimParts& parts = strategy_[i][d];
    if (parts.empty() || std::ranges::count(parts, 0U) > 0) {
      return CutProblem{"parts", fmt::format("dimension {} of input {} is cut into 0 parts", d, i)};
    }
    if (axis.own) return std::nullopt;  // Follows from the positions that the devices look up.
    if (parts.size() > 1 && parts.size() != axis.loops.size()) {
      return CutProblem{"dimensions",
                        fmt::format("{} numbers for dimension {} of input {}, which has {} factors",
                                    parts.size(), d, i, axis.loops.size())};
    }
    const DimParts all = OfFactors(axis, parts);
    for (size_t f = 0; f < axis.loops.size(); ++f) {
      if (auto problem = SetLoop(axis.loops[f], all[f], i, d)) return problem;
    }
    if (!axis.loops.empty() || ProductOf(parts) == 1) return std::nullopt;
    return Whole(i, d, ProductOf(parts));
  }

  static CutProblem Whole(size_t i, size_t d, uint64_t parts) {
    return {"whole", fmt::format("dimension {} of input {} is cut into {} parts, and every device "
                                 "needs all of it",
                                 d, i, parts)};
  }

  // One number cuts the outer factors first.
  DimParts OfFactors(const ShardAxis& axis, const DimParts& parts) const {
    if (parts.size() > 1) return parts;
    DimParts all(axis.loops.size(), 1);
    uint32_t left = parts[0];
    for (size_t f = 0; f < all.size() && left > 1; ++f) {
      const Dim& extent = rule_.loops[axis.loops[f]].extent;
      const bool last = f + 1 == all.size();
      const bool fits = extent.symbol != kConstant || last || left <= extent.times ||
                        left % extent.times != 0 || !rule_.loops[axis.loops[f + 1]].cut;
      all[f] = fits ? left : static_cast<uint32_t>(extent.times);
      left /= all[f];
    }
    return all;
  }

  std::optional<CutProblem> SetLoop(LoopIndex loop, uint32_t parts, size_t i, size_t d) {
    if (parts > 1 && !MayCut(rule_, loop)) return Whole(i, d, parts);
    if (parts_[loop] != 0 && parts_[loop] != parts) {
      return CutProblem{
          "agree", fmt::format("dimension {} of input {} is cut into {} parts, and another input "
                               "cuts the same dimension into {}",
                               d, i, parts, parts_[loop])};
    }
    parts_[loop] = parts;
    return std::nullopt;
  }

  const Sharding& rule_;
  const Strategy& strategy_;
  std::vector<uint32_t> parts_;  // By loop; 0: not known yet.
};

void AddParts(const Sharding& rule, uint32_t devices, std::vector<uint32_t>& begun,
              std::vector<std::vector<uint32_t>>& all) {
  const size_t loop = begun.size();
  if (loop == rule.loops.size()) {
    all.push_back(begun);
    return;
  }
  const Dim& extent = rule.loops[loop].extent;
  const bool may = MayCut(rule, static_cast<LoopIndex>(loop));
  for (uint32_t parts = 1; parts <= (may ? devices : 1); ++parts) {
    if (devices % parts != 0) continue;
    if (parts > 1 && extent.symbol == kConstant && parts > extent.times) break;
    begun.push_back(parts);
    AddParts(rule, devices / parts, begun, all);
    begun.pop_back();
  }
}

// The number of parts, for comparing a dimension of two strategies.
double LogParts(const Strategy& strategy, size_t i, size_t d) {
  if (i >= strategy.size() || d >= strategy[i].size()) return 0;
  double log = 0;
  for (const uint32_t parts : strategy[i][d]) log += std::log2(std::max(parts, 1U));
  return log;
}

double Distance(const Strategy& a, const Strategy& b) {
  double distance = 0;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const size_t dims = std::max(i < a.size() ? a[i].size() : 0, i < b.size() ? b[i].size() : 0);
    for (size_t d = 0; d < dims; ++d) {
      distance += std::fabs(LogParts(a, i, d) - LogParts(b, i, d));
    }
  }
  return distance;
}

}  // namespace

std::variant<NodeCut, CutProblem> CutOf(const Sharding& rule, const Strategy& strategy,
                                        uint32_t devices, bool copies_first) {
  StrategyReader reader(rule, strategy);
  if (auto problem = reader.Read()) return *std::move(problem);
  uint64_t used = 1;
  for (const uint32_t parts : reader.parts()) used *= parts;
  if (used > devices || devices % used != 0) {
    return CutProblem{"devices",
                      fmt::format("it needs {} devices, which do not divide {}", used, devices)};
  }
  const bool cuts_table =
      std::ranges::any_of(rule.table, [&](LoopIndex loop) { return reader.parts()[loop] > 1; });
  return CutOfParts(rule, reader.parts(), devices, copies_first || cuts_table);
}

NodeCut CutOfParts(const Sharding& rule, const std::vector<uint32_t>& parts, uint32_t devices,
                   bool copies_first) {
  NodeCut cut;
  cut.loops.resize(rule.loops.size());
  uint32_t used = 1;
  for (const uint32_t count : parts) used *= count;
  DT_CHECK(devices % used == 0);
  if (copies_first && used < devices) cut.matrix.push_back(devices / used);
  for (const LoopIndex loop : rule.order) {
    if (parts[loop] > 1) cut.loops[loop] = {static_cast<AxisIndex>(cut.matrix.size())};
    cut.matrix.push_back(parts[loop]);
  }
  if (!copies_first && used < devices) cut.matrix.push_back(devices / used);
  return cut;
}

Sharding WithAllCuts(Sharding rule) {
  for (LoopIndex loop = 0; loop < rule.loops.size(); ++loop) {
    if (!rule.loops[loop].cut) rule.order.push_back(loop);
    rule.loops[loop].cut = true;
  }
  return rule;
}

Strategy StrategyOf(const Sharding& rule, const NodeCut& cut) {
  const auto parts_of = [&](LoopIndex loop) {
    DT_CHECK(cut.loops[loop].size() <= 1);
    return cut.loops[loop].empty() ? 1U : cut.matrix[cut.loops[loop][0]];
  };
  Strategy strategy;
  for (const ShardTensor& tensor : rule.inputs) {
    strategy.emplace_back();
    for (const ShardAxis& axis : tensor.axes) {
      DimParts parts;
      for (const LoopIndex loop : axis.loops) parts.push_back(parts_of(loop));
      if (std::all_of(parts.begin() + (parts.empty() ? 0 : 1), parts.end(),
                      [](uint32_t count) { return count == 1; })) {
        parts.resize(1, 1);
      }
      strategy.back().push_back(std::move(parts));
    }
  }
  return strategy;
}

std::vector<std::vector<uint32_t>> AllParts(const Sharding& rule, uint32_t devices) {
  std::vector<std::vector<uint32_t>> all;
  std::vector<uint32_t> begun;
  AddParts(rule, devices, begun, all);
  return all;
}

std::optional<Strategy> NearestStrategy(const Sharding& rule, const Strategy& wrong,
                                        uint32_t devices) {
  std::optional<Strategy> nearest;
  double least = 0;
  uint64_t most = 0;
  for (const std::vector<uint32_t>& parts : AllParts(rule, devices)) {
    Strategy strategy = StrategyOf(rule, CutOfParts(rule, parts, devices));
    const double distance = Distance(strategy, wrong);
    const uint64_t used = ProductOf(parts);
    if (nearest && (distance > least || (distance == least && used <= most))) continue;
    nearest = std::move(strategy);
    least = distance;
    most = used;
  }
  return nearest;
}

std::optional<NodeCut> InMatrix(const NodeCut& cut, const DeviceMatrix& finer) {
  std::vector<AxisList> parts(cut.matrix.size());
  AxisIndex axis = 0;
  for (size_t a = 0; a < cut.matrix.size(); ++a) {
    for (uint32_t size = 1; size < cut.matrix[a]; ++axis) {
      if (axis == finer.size()) return std::nullopt;
      size *= finer[axis];
      parts[a].push_back(axis);
      if (cut.matrix[a] % size != 0) return std::nullopt;
    }
  }
  NodeCut same{.matrix = finer, .loops = std::vector<AxisList>(cut.loops.size())};
  for (size_t loop = 0; loop < cut.loops.size(); ++loop) {
    for (const AxisIndex a : cut.loops[loop]) {
      if (parts[a].size() > 1) return std::nullopt;
      same.loops[loop].insert(same.loops[loop].end(), parts[a].begin(), parts[a].end());
    }
  }
  return same;
}

NodeLayouts LayoutsOf(const Sharding& rule, const NodeCut& cut) {
  NodeLayouts layouts;
  for (const ShardTensor& input : rule.inputs) layouts.inputs.push_back(LayoutOf(rule, input, cut));
  for (const ShardTensor& output : rule.outputs) {
    Layout layout = LayoutOf(rule, output, cut);
    layout.join = output.join;
    if (!output.same && !output.HasOwnRows()) layout.partial = OtherAxes(output, cut);
    layouts.outputs.push_back(std::move(layout));
  }
  return layouts;
}

std::variant<Layout, CutProblem> OutLayout(const Layout& made, const std::vector<DimParts>& out) {
  if (out.size() != made.dims.size()) {
    return CutProblem{"dimensions", fmt::format("out cuts {} dimensions of an output that has {}",
                                                out.size(), made.dims.size())};
  }
  Layout layout = made;
  layout.partial.clear();
  AxisList free = made.partial;
  for (const AxisIndex axis : CopyAxes(made)) free.push_back(axis);
  for (size_t d = 0; d < out.size(); ++d) {
    const uint64_t wanted = ProductOf(out[d]);
    if (wanted == 1) layout.dims[d].clear();
    uint64_t parts = 1;
    for (const CutFactor& factor : layout.dims[d]) {
      for (const AxisIndex axis : factor.axes) parts *= made.matrix[axis];
    }
    for (size_t i = 0; i < free.size() && parts < wanted;) {
      const uint32_t size = made.matrix[free[i]];
      if (size == 1 || wanted % (parts * size) != 0) {
        ++i;
        continue;
      }
      if (layout.dims[d].empty()) layout.dims[d].emplace_back();
      layout.dims[d].back().axes.push_back(free[i]);
      free.erase(free.begin() + static_cast<ptrdiff_t>(i));
      parts *= size;
    }
    if (parts == wanted) continue;
    return CutProblem{"out", fmt::format("dimension {} of the output cannot be cut into {} parts: "
                                         "it has {}, and no free axis of the device matrix gives "
                                         "the rest",
                                         d, wanted, parts)};
  }
  return layout;
}

std::vector<AxisList> GradientAxes(const Sharding& rule, const NodeCut& cut) {
  std::vector<AxisList> axes;
  for (const ShardTensor& input : rule.inputs) {
    const bool has_gradient = input.holds == Holds::kValues && !input.HasOwnRows();
    axes.push_back(has_gradient ? OtherAxes(input, cut) : AxisList());
  }
  return axes;
}

}  // namespace dt::scheduler
