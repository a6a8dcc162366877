#include "common/layout/redistribute.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "common/layout/layout_search.h"
#include "common/layout/refine.h"

namespace dt {
namespace {

using Kind = RedistributionKind;

// With more devices the cost is that of a device with the largest parts, and boxes are moved only
// where nothing else is possible: both need work for each device.
constexpr uint32_t kDevicesCounted = 64;

double Elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
}

double GroupSize(const Layout& layout, const AxisList& axes) {
  double n = 1;
  for (const AxisIndex axis : axes) n *= layout.matrix[axis];
  return n;
}

bool IsCommunication(const RedistributionStep& step) {
  return step.kind != Kind::kSplit && step.kind != Kind::kReshape;
}

// Adds up the elements that each rank receives or sends in a sequence.
class Meter {
 public:
  explicit Meter(const ShapedLayout& from) : layout_(&from.layout), shape_(&from.shape) {}

  void Add(const RedistributionStep& step) {
    if (step.kind == Kind::kSendRecv) {
      AddTransfer(step.transfer);
    } else if (IsCommunication(step)) {
      const uint32_t devices = DeviceCount(step.after.matrix);
      const uint32_t counted = devices > kDevicesCounted ? 1 : devices;
      for (DeviceIndex i = 0; i < counted; ++i) {
        elements_[RankOf(step.after, i)] += OfDevice(step, i);
      }
    }
    layout_ = &step.after;
    shape_ = &step.shape;
  }

  double most() const {
    double most = 0;
    for (const auto& [rank, elements] : elements_) most = std::max(most, elements);
    return most;
  }

 private:
  double OfDevice(const RedistributionStep& step, DeviceIndex device) const {
    const double before = Elements(LocalShape(*layout_, *shape_, device));
    if (step.kind == Kind::kAllGather) {
      return Elements(LocalShape(step.after, step.shape, device)) - before;
    }
    const double n = GroupSize(step.after, step.axes);
    return (step.kind == Kind::kAllReduce ? 2 : 1) * before * (n - 1) / n;
  }
  void AddTransfer(const Transfer& transfer) {
    std::map<uint32_t, double> sent, received;
    for (const BoxMove& move : transfer.moves) {
      if (move.from == move.to) continue;
      sent[move.from] += static_cast<double>(ElementsOf(move.box));
      received[move.to] += static_cast<double>(ElementsOf(move.box));
    }
    for (const auto& [rank, elements] : received) sent[rank] = std::max(sent[rank], elements);
    for (const auto& [rank, elements] : sent) elements_[rank] += elements;
  }

  const Layout* layout_;
  const Shape* shape_;
  std::map<uint32_t, double> elements_;
};

using Steps = std::vector<RedistributionStep>;

double CostOf(const ShapedLayout& from, const Steps& steps) {
  Meter meter(from);
  for (const RedistributionStep& step : steps) meter.Add(step);
  return meter.most();
}

// True for the layouts whose dimensions a group can divide once more.
bool TakesAnotherCut(const Layout& layout, size_t d) {
  const CutDim& dim = layout.dims[d];
  return dim.empty() || (dim.size() == 1 && dim[0].parts.empty());
}

Layout WithCut(Layout layout, size_t d, const AxisList& axes) {
  if (layout.dims[d].empty()) layout.dims[d].emplace_back();
  AxisList& cut = layout.dims[d][0].axes;
  cut.insert(cut.end(), axes.begin(), axes.end());
  return layout;
}

// True if the devices of a group along these axes can divide what they hold of dimension d.
bool TakesCut(const Layout& layout, size_t d, const AxisList& axes, int64_t extent) {
  if (!TakesAnotherCut(layout, d)) return false;
  const AxisList none;
  const AxisList& before = layout.dims[d].empty() ? none : layout.dims[d][0].axes;
  return DividesAsOne(layout.matrix, {before, axes}, extent);
}

// Sequences from one pair of layouts to another.
class Sequences {
 public:
  Sequences(const ShapedLayout& from, const ShapedLayout& to, const RedistributionOptions& options)
      : from_(from), to_(to), options_(options) {}

  void AddPath(const Refinement& refinement) {
    const LayoutPath path = ShortestPath(refinement, from_.layout.join, options_.all_to_all);
    Offer(Wrapped(refinement, path.steps));
    Offer(Wrapped(refinement, GatherAndSplit(refinement, from_.layout.join).steps));
  }

  // Joins everything on every device, and divides it again.
  void AddGather() {
    Steps steps;
    const Spread old_side = SpreadOf(from_), new_side = SpreadOf(to_);
    Layout now = old_side.layout;
    if (!now.partial.empty()) steps.push_back(Reduced(now));
    if (old_side.shape != from_.shape) {
      Append({.kind = Kind::kReshape}, now, old_side.shape, steps);
    }
    for (size_t d = 0; d < now.dims.size(); ++d) {
      if (now.dims[d].empty()) continue;
      RedistributionStep step{.kind = Kind::kAllGather, .axes = now.dims[d][0].axes, .dim = d};
      now.dims[d].clear();
      Append(std::move(step), now, old_side.shape, steps);
    }
    now = new_side.layout;
    for (CutDim& dim : now.dims) dim.clear();
    if (old_side.shape != new_side.shape) {
      Append({.kind = Kind::kReshape}, now, new_side.shape, steps);
    }
    for (size_t d = 0; d < now.dims.size(); ++d) {
      if (new_side.layout.dims[d].empty()) continue;
      const CutFactor& factor = new_side.layout.dims[d][0];
      for (const AxisIndex axis : factor.axes) {
        now = WithCut(now, d, {axis});
        now.dims[d][0].parts = factor.parts;
        Append({.kind = Kind::kSplit, .axes = {axis}, .dim = d}, now, new_side.shape, steps);
      }
    }
    if (new_side.shape != to_.shape) {
      Append({.kind = Kind::kReshape}, to_.layout, to_.shape, steps);
    }
    Offer(std::move(steps));
  }

  // Sends boxes, after reducing what is partial.
  void AddTransfers() {
    for (const Steps& reduced : Reductions()) {
      const Layout& holds = reduced.empty() ? from_.layout : reduced.back().after;
      AddTransfer(reduced, holds, to_.layout);
      AddSharedTransfers(reduced, holds);
    }
  }

  Redistribution Best() {
    Redistribution result;
    for (const RedistributionStep& step : best_) {
      if (IsCommunication(step)) result.seconds += options_.latency;
    }
    result.steps = std::move(best_);
    const double bytes = best_cost_ * static_cast<double>(options_.element_bytes);
    result.bytes = static_cast<int64_t>(bytes);
    result.seconds += bytes / options_.bytes_per_second;
    return result;
  }

 private:
  void Append(RedistributionStep step, const Layout& after, const Shape& shape,
              Steps& steps) const {
    step.after = after;
    step.shape = shape;
    steps.push_back(std::move(step));
  }
  // The same layout with a dimension for each factor, if a dimension has several.
  struct Spread {
    Layout layout;
    Shape shape;
  };
  static Spread SpreadOf(const ShapedLayout& of) {
    Spread spread{of.layout, {}};
    spread.layout.dims.clear();
    for (size_t d = 0; d < of.shape.size(); ++d) {
      const CutDim& dim = of.layout.dims[d];
      const Shape sizes = FactorsOf(dim, of.shape[d]);
      if (dim.empty()) {
        spread.layout.dims.emplace_back();
        spread.shape.push_back(of.shape[d]);
      }
      for (size_t f = 0; f < dim.size(); ++f) {
        spread.layout.dims.emplace_back();
        if (!dim[f].axes.empty()) spread.layout.dims.back().push_back(dim[f]);
        spread.shape.push_back(sizes[f]);
      }
    }
    return spread;
  }

  void Offer(Steps steps) {
    const double cost = CostOf(from_, steps);
    if (found_ && cost >= best_cost_) return;
    found_ = true;
    best_cost_ = cost;
    best_ = std::move(steps);
  }

  // Puts what changes between shapes around the steps.
  Steps Wrapped(const Refinement& refinement, Steps steps) const {
    const bool same = from_.shape == to_.shape;
    if (!steps.empty() && refinement.shape != from_.shape) {
      RedistributionStep step{.kind = Kind::kReshape};
      step.after = PlainLayout(refinement.matrix, refinement.from);
      step.after.partial = refinement.from_partial;
      step.after.join = from_.layout.join;
      step.shape = refinement.shape;
      steps.insert(steps.begin(), std::move(step));
    }
    for (RedistributionStep& step : steps) step.after.ranks = from_.layout.ranks;
    if (steps.empty() ? !same : refinement.shape != to_.shape) {
      Append({.kind = Kind::kReshape}, to_.layout, to_.shape, steps);
    }
    return steps;
  }

  // `now` is the old layout, or its spread form.
  RedistributionStep Reduced(Layout& now) const {
    RedistributionStep step{.kind = Kind::kAllReduce, .axes = now.partial};
    now.partial.clear();
    step.after = from_.layout;
    step.after.partial.clear();
    step.shape = from_.shape;
    return step;
  }

  // Ways to reduce what is partial; a single empty one if nothing is.
  std::vector<Steps> Reductions() const {
    const Layout& from = from_.layout;
    if (from.partial.empty()) return {{}};
    Layout now = from;
    std::vector<Steps> ways = {{Reduced(now)}};
    for (size_t d = 0; d < from_.shape.size(); ++d) {
      if (!TakesCut(from, d, from.partial, from_.shape[d])) continue;
      RedistributionStep step{.kind = Kind::kReduceScatter, .axes = from.partial, .dim = d};
      ways.emplace_back();
      Append(std::move(step), WithCut(now, d, from.partial), from_.shape, ways.back());
    }
    return ways;
  }

  void AddTransfer(Steps steps, const Layout& from, const Layout& to) {
    RedistributionStep step{.kind = Kind::kSendRecv};
    step.transfer = TransferBetween(from, to, to_.shape);
    Append(std::move(step), to, to_.shape, steps);
    Offer(std::move(steps));
  }

  // Each replica receives a part, and the replicas join their parts.
  void AddSharedTransfers(const Steps& reduced, const Layout& from) {
    const Layout& to = to_.layout;
    const AxisList copies = CopyAxes(to);
    if (copies.empty()) return;
    for (size_t d = 0; d < to_.shape.size(); ++d) {
      if (!TakesCut(to, d, copies, to_.shape[d])) continue;
      Steps steps = reduced;
      const Layout thin = WithCut(to, d, copies);
      RedistributionStep send{.kind = Kind::kSendRecv};
      send.transfer = TransferBetween(from, thin, to_.shape);
      Append(std::move(send), thin, to_.shape, steps);
      Append({.kind = Kind::kAllGather, .axes = copies, .dim = d}, to, to_.shape, steps);
      Offer(std::move(steps));
    }
  }

  const ShapedLayout from_, to_;
  const RedistributionOptions& options_;
  bool found_ = false;
  double best_cost_ = 0;
  Steps best_;
};

bool HasGivenParts(const Layout& layout) {
  for (const CutDim& dim : layout.dims) {
    for (const CutFactor& factor : dim) {
      if (!factor.parts.empty()) return true;
    }
  }
  return false;
}

Status CheckPair(const ShapedLayout& from, const ShapedLayout& to) {
  DT_TRY_STATUS(Prefixed(CheckLayout(from.layout, from.shape), "from"));
  DT_TRY_STATUS(Prefixed(CheckLayout(to.layout, to.shape), "to"));
  if (Elements(from.shape) == Elements(to.shape)) return OkStatus();
  return Invalid("the shapes have {} and {} elements", Elements(from.shape), Elements(to.shape));
}

bool SameRanks(const Layout& a, const Layout& b) {
  return a.ranks == b.ranks && DeviceCount(a.matrix) == DeviceCount(b.matrix);
}

Status NotPartial() { return Invalid("the new layout is partial where the old one is not"); }

}  // namespace

std::string_view NameOf(RedistributionKind kind) {
  constexpr std::string_view kNames[] = {"Split",         "AllGather", "AllToAll", "AllReduce",
                                         "ReduceScatter", "Reshape",   "SendRecv"};
  return kNames[static_cast<size_t>(kind)];
}

Result<Redistribution> Redistribute(const ShapedLayout& from, const ShapedLayout& to,
                                    const RedistributionOptions& options) {
  DT_TRY_STATUS(CheckPair(from, to));
  const Layout old_layout = Normalised(from.layout, from.shape);
  const Layout new_layout = Normalised(to.layout, to.shape);
  if (old_layout == new_layout && from.shape == to.shape) return Redistribution();
  const ShapedLayout old_place{old_layout, from.shape}, new_place{new_layout, to.shape};
  Sequences sequences(old_place, new_place, options);
  const bool same_ranks = SameRanks(old_layout, new_layout);
  std::optional<Refinement> refinement;
  if (same_ranks && !HasGivenParts(old_layout) && !HasGivenParts(new_layout)) {
    refinement = CommonRefinement(old_place, new_place);
  }
  if (refinement) {
    if (!std::ranges::includes(refinement->from_partial, refinement->to_partial)) {
      return NotPartial();
    }
    sequences.AddPath(*refinement);
  } else if (!new_layout.partial.empty()) {
    return NotPartial();
  } else if (same_ranks) {
    sequences.AddGather();
  } else if (from.shape != to.shape) {
    return Invalid("a tensor cannot change its ranks and its shape at once");
  }
  const bool few = DeviceCount(old_layout.matrix) <= kDevicesCounted || !refinement;
  const bool boxes = options.all_to_all && options.boxes && few && new_layout.partial.empty();
  if (from.shape == to.shape && (boxes || !same_ranks)) sequences.AddTransfers();
  return sequences.Best();
}

}  // namespace dt
