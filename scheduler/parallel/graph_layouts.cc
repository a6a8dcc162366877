#include "scheduler/parallel/graph_layouts.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/layout/refine.h"
#include "common/layout/sample_part.h"
#include "scheduler/parallel/redistribution_cache.h"

namespace dt::scheduler {
namespace {

Layout WithoutPartial(Layout layout) {
  layout.partial.clear();
  return layout;
}

class Finder {
 public:
  Finder(const LayoutProblem& problem, std::vector<NodeProblem>& problems)
      : problem_(problem),
        problems_(problems),
        readers_(problem.values.size(), 0),
        known_(problem.all_to_all) {
    result_.cuts.resize(problem.nodes.size());
    result_.layouts.resize(problem.nodes.size());
    result_.inputs.resize(problem.nodes.size());
    result_.values.resize(problem.values.size());
    result_.at_producer.assign(problem.values.size(), kNone);
    versions_.resize(problem.values.size());
    first_reader_.assign(problem.values.size(), kNone);
    gradients_.resize(problem.nodes.size());
    for (NodeIndex n = 0; n < problem.nodes.size(); ++n) {
      for (const ValueIndex v : NodeAt(n).inputs) ++readers_[v];
      if (NodeAt(n).forward != kNone) gradients_[NodeAt(n).forward].push_back(n);
    }
  }

  GraphLayouts Run() {
    for (NodeIndex n = 0; n < problem_.nodes.size(); ++n) {
      if (!FindCut(n)) continue;
      result_.layouts[n] = LayoutsOf(problem_.nodes[n].rule, result_.cuts[n]);
      TakeInputs(n);
      MakeOutputs(n);
    }
    for (const LayoutResult& result : problem_.results) result_.results.push_back(Give(result));
    return std::move(result_);
  }

 private:
  uint32_t Give(const LayoutResult& result) {
    const ValueIndex v = result.value;
    if (versions_[v].empty()) return kNone;  // Its producer has a problem.
    if (result.own_samples) return GiveOwnSamples(v);
    Layout wanted = WithoutPartial(Lies(v));
    for (CutDim& dim : wanted.dims) dim.clear();
    if (result.like != kNone && result_.values[result.like]) {
      wanted = WithoutPartial(*result_.values[result.like]);
    }
    if (result.may_be_partial) {
      const Layout& lies = Lies(v);
      const Shape& shape = problem_.values[v].shape;
      if (Normalised(WithoutPartial(lies), shape).dims == Normalised(wanted, shape).dims) {
        return versions_[v][0].change;
      }
    }
    return ChangeTo(v, wanted);
  }

  uint32_t GiveOwnSamples(ValueIndex v) {
    for (const Version& version : versions_[v]) {
      if (HasOwnSamples(version.layout)) return version.change;
    }
    return ChangeTo(v, SamplesInOrder(problem_.devices, Lies(v).dims.size()));
  }

  const LayoutNode& NodeAt(NodeIndex n) const { return problem_.nodes[n]; }

  void Report(NodeIndex n, CutProblem problem) {
    const LayoutNode& node = NodeAt(n);
    NodeProblem report{.node = n, .problem = std::move(problem)};
    if (node.strategy) {
      report.nearest = NearestStrategy(node.rule, *node.strategy, problem_.devices);
    }
    problems_.push_back(std::move(report));
  }

  bool FindCut(NodeIndex n) {
    const LayoutNode& node = NodeAt(n);
    if (node.forward != kNone || node.like != kNone) return FindGradientCut(n);
    if (!node.strategy) {
      result_.cuts[n] =
          node.cut ? *node.cut : CutOfParts(node.rule, DefaultParts(node.rule), problem_.devices);
      return true;
    }
    auto cut = CutOf(node.rule, *node.strategy, problem_.devices, CopiesFirst(node));
    if (auto* problem = std::get_if<CutProblem>(&cut)) {
      Report(n, std::move(*problem));
      return false;
    }
    result_.cuts[n] = std::get<NodeCut>(std::move(cut));
    return true;
  }

  // Nodes that read the data. Tables say so themselves (Sharding::table).
  bool CopiesFirst(const LayoutNode& node) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (problem_.values[node.inputs[i]].origin == ValueOrigin::kInput) return true;
    }
    return false;
  }

  std::vector<uint32_t> DefaultParts(const Sharding& rule) const {
    std::vector<uint32_t> parts(rule.loops.size(), 1);
    for (size_t loop = 0; loop < parts.size(); ++loop) {
      const ShardLoop& of = rule.loops[loop];
      if (of.cut && of.extent == Dim{kBatch, 1}) {
        parts[loop] = problem_.devices;
        break;
      }
    }
    return parts;
  }

  // A gradient node is cut as the values of its forward node are.
  bool FindGradientCut(NodeIndex n) {
    const LayoutNode& node = NodeAt(n);
    std::vector<std::optional<Layout>> frame;
    KnownLayouts known;
    for (const ValueIndex v : node.inputs) frame.push_back(InFrameOf(node, v));
    for (const std::optional<Layout>& layout : frame) {
      known.inputs.push_back(layout ? &*layout : nullptr);
    }
    if (node.like != kNone && result_.values[node.like]) {
      known.outputs.assign(node.outputs.size(), &*result_.values[node.like]);
    }
    const auto given = [](const Layout* layout) { return layout != nullptr; };
    if (std::ranges::none_of(known.inputs, given) && std::ranges::none_of(known.outputs, given)) {
      NodeCut& cut = result_.cuts[n];
      cut.matrix = node.forward == kNone ? DeviceMatrix{problem_.devices}
                                         : result_.cuts[node.forward].matrix;
      cut.loops.resize(node.rule.loops.size());
      return true;
    }
    auto held = CutOfLayouts(node.rule, known);
    if (auto* problem = std::get_if<CutProblem>(&held)) {
      Report(n, std::move(*problem));
      return false;
    }
    result_.cuts[n] = std::get<HeldCut>(std::move(held)).cut;
    return true;
  }

  // The layout of a value as the forward node sees it, where it is whole. Gradients lie as their
  // values. Nothing if it follows from others.
  std::optional<Layout> InFrameOf(const LayoutNode& gradient, ValueIndex v) const {
    if (gradient.forward == kNone) return std::nullopt;
    const LayoutNode& node = NodeAt(gradient.forward);
    const NodeLayouts& layouts = result_.layouts[gradient.forward];
    if (layouts.outputs.size() != node.outputs.size()) return std::nullopt;
    const auto in = std::ranges::find(node.inputs, v);
    if (in != node.inputs.end()) {
      return WithoutPartial(layouts.inputs[static_cast<size_t>(in - node.inputs.begin())]);
    }
    const auto out = std::ranges::find(node.outputs, v);
    if (out != node.outputs.end()) {
      return WithoutPartial(layouts.outputs[static_cast<size_t>(out - node.outputs.begin())]);
    }
    for (const NodeIndex n : gradients_[gradient.forward]) {
      const auto made = std::ranges::find(NodeAt(n).outputs, v);
      if (made == NodeAt(n).outputs.end()) continue;
      const auto at = static_cast<size_t>(made - NodeAt(n).outputs.begin());
      if (at >= result_.layouts[n].outputs.size()) return std::nullopt;
      return WithoutPartial(result_.layouts[n].outputs[at]);
    }
    return WithoutPartial(layouts.outputs[0]);
  }

  void TakeInputs(NodeIndex n) {
    const LayoutNode& node = NodeAt(n);
    result_.inputs[n].resize(node.inputs.size());
    if (const std::optional<Later> later = ReduceLater(n)) Keep(n, *later);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      TakeInput(n, i, node.inputs[i], result_.layouts[n].inputs[i]);
    }
  }

  void TakeInput(NodeIndex n, size_t i, ValueIndex v, const Layout& wanted) {
    const LayoutValue& value = problem_.values[v];
    if (value.origin == ValueOrigin::kInput) return;
    if (value.origin == ValueOrigin::kParameter) {
      TakeParameter(n, v, wanted);
      return;
    }
    if (value.origin == ValueOrigin::kRows && !TakeRows(n, i, v)) return;
    if (!result_.values[v]) return;  // Its producer has a problem of its own.
    result_.inputs[n][i].change = ChangeTo(v, wanted);
  }

  // The first reader decides whose rows a device has. False if this one needs others.
  bool TakeRows(NodeIndex n, size_t i, ValueIndex v) {
    const std::vector<ShardAxis>& axes = NodeAt(n).rule.inputs[i].axes;
    Layout rows = WithoutPartial(result_.layouts[n].inputs[i]);
    for (size_t d = 0; d < rows.dims.size(); ++d) {
      if (!axes[d].own) rows.dims[d].clear();
    }
    std::optional<Layout>& held = result_.values[v];
    const Shape& shape = problem_.values[v].shape;
    if (!held) {
      held = rows;
      versions_[v] = {{rows, kNone}};
      first_reader_[v] = n;
    } else if (Normalised(*held, shape) != Normalised(rows, shape)) {
      Report(n, {"agree", fmt::format("\"{}\" needs rows of other samples than \"{}\"",
                                      NodeAt(n).name, NodeAt(first_reader_[v]).name)});
      return false;
    }
    return true;
  }

  void TakeParameter(NodeIndex n, ValueIndex v, const Layout& wanted) {
    std::optional<Layout>& held = result_.values[v];
    const Shape& shape = problem_.values[v].shape;
    if (!held) {
      held = wanted;
      first_reader_[v] = n;
    } else if (Normalised(*held, shape) != Normalised(wanted, shape)) {
      Report(n, {"agree", fmt::format("\"{}\" is cut otherwise by \"{}\"", problem_.values[v].name,
                                      NodeAt(first_reader_[v]).name)});
    }
  }

  // Inputs that stay partial, over which axes, and the node's cut in a matrix that has these.
  struct Later {
    std::vector<size_t> inputs;
    AxisList partial;
    NodeCut cut;
  };
  void Keep(NodeIndex n, const Later& later) {
    result_.cuts[n] = later.cut;
    result_.layouts[n] = LayoutsOf(NodeAt(n).rule, HeldCut{later.cut, later.partial});
    for (const size_t i : later.inputs) result_.layouts[n].inputs[i].partial = later.partial;
  }

  // The inputs that are reduced later with fewer bytes, if there are any.
  std::optional<Later> ReduceLater(NodeIndex n) {
    std::optional<Later> later = PartialInputs(n);
    if (!later) return std::nullopt;
    const LayoutNode& node = NodeAt(n);
    const NodeLayouts now = LayoutsOf(node.rule, later->cut);
    const NodeLayouts then = LayoutsOf(node.rule, HeldCut{later->cut, later->partial});
    int64_t now_bytes = 0, later_bytes = 0;
    for (const size_t i : later->inputs) {
      const ValueIndex v = node.inputs[i];
      Layout kept = now.inputs[i];
      kept.partial = later->partial;
      now_bytes += Between(v, Lies(v), now.inputs[i]).bytes;
      later_bytes += Between(v, Lies(v), kept).bytes;
    }
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueIndex v = node.outputs[o];
      const Layout whole = WithoutPartial(now.outputs[o]);
      now_bytes += Between(v, now.outputs[o], whole).bytes;
      later_bytes += Between(v, then.outputs[o], whole).bytes;
    }
    return later_bytes < now_bytes ? later : std::nullopt;
  }

  // The layout in which readers find the value.
  const Layout& Lies(ValueIndex v) const { return versions_[v][0].layout; }

  // Inputs that are partial, that no other node reads, and in which the node is linear.
  std::optional<Later> PartialInputs(NodeIndex n) const {
    const LayoutNode& node = NodeAt(n);
    Later later;
    size_t together = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Linear linear = node.rule.inputs[i].linear;
      if (linear == Linear::kTogether) ++together;
      const bool only = readers_[node.inputs[i]] == 1;
      if (versions_[node.inputs[i]].empty() || !only || linear == Linear::kNo) continue;
      if (Lies(node.inputs[i]).partial.empty()) continue;
      if (!AddPartial(n, i, later)) return std::nullopt;
    }
    if (later.inputs.empty()) return std::nullopt;
    const bool sum = node.rule.inputs[later.inputs[0]].linear == Linear::kTogether;
    return later.inputs.size() == (sum ? together : 1) ? std::optional(later) : std::nullopt;
  }

  // Writes the node's cut in a matrix that has the partial axes of input i, which must not cut it.
  bool AddPartial(NodeIndex n, size_t i, Later& later) const {
    const LayoutValue& value = problem_.values[NodeAt(n).inputs[i]];
    const Layout& lies = Lies(NodeAt(n).inputs[i]);
    if (lies.join != Join::kSum) return false;
    const auto common =
        CommonRefinement({lies, value.shape}, {result_.layouts[n].inputs[i], value.shape});
    if (!common) return false;
    const std::optional<NodeCut> cut = InMatrix(result_.cuts[n], common->matrix);
    if (!cut || CutsAnyOf(*cut, common->from_partial)) return false;
    const bool first = later.inputs.empty();
    if (!first && (later.partial != common->from_partial || later.cut != *cut)) return false;
    later.inputs.push_back(i);
    later.partial = common->from_partial;
    later.cut = *cut;
    return true;
  }
  static bool CutsAnyOf(const NodeCut& cut, const AxisList& axes) {
    return std::ranges::any_of(cut.loops, [&](const AxisList& loop) {
      return std::ranges::find_first_of(loop, axes) != loop.end();
    });
  }

  void MakeOutputs(NodeIndex n) {
    const LayoutNode& node = NodeAt(n);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueIndex v = node.outputs[o];
      result_.values[v] = result_.layouts[n].outputs[o];
      versions_[v] = {{*result_.values[v], kNone}};
      if (node.out && o < node.out->size()) {
        ShapeOutput(n, o);
      } else if (readers_[v] == 0 && problem_.results.empty()) {
        result_.at_producer[v] = ChangeTo(v, WithoutPartial(*result_.values[v]));
      }
    }
  }

  // Gives an output the layout that the user wants.
  void ShapeOutput(NodeIndex n, size_t o) {
    const LayoutNode& node = NodeAt(n);
    const ValueIndex v = node.outputs[o];
    auto wanted = OutLayout(*result_.values[v], (*node.out)[o]);
    if (auto* problem = std::get_if<CutProblem>(&wanted)) {
      Report(n, std::move(*problem));
      return;
    }
    result_.at_producer[v] = ChangeTo(v, std::get<Layout>(wanted));
    // All readers begin with it.
    versions_[v] = {{std::get<Layout>(wanted), result_.at_producer[v]}};
  }

  // The cheapest way from a layout in which the value already lies. kNone: it lies so already.
  uint32_t ChangeTo(ValueIndex v, const Layout& wanted) {
    const Shape& shape = problem_.values[v].shape;
    const Layout goal = Normalised(wanted, shape);
    std::optional<Redistribution> best;
    const Version* from = nullptr;
    for (const Version& version : versions_[v]) {
      if (Normalised(version.layout, shape) == goal) return version.change;
      Redistribution how = Between(v, version.layout, wanted);
      if (best &&
          std::tuple(how.bytes, how.steps.size()) >= std::tuple(best->bytes, best->steps.size())) {
        continue;
      }
      best = std::move(how);
      from = &version;
    }
    DT_CHECK(best.has_value());
    if (best->steps.empty()) return from->change;
    const auto change = static_cast<uint32_t>(result_.changes.size());
    result_.changes.push_back({.value = v,
                               .after = from->change,
                               .from = from->layout,
                               .to = wanted,
                               .how = *std::move(best)});
    versions_[v].push_back({wanted, change});
    return change;
  }

  const Redistribution& Between(ValueIndex v, const Layout& from, const Layout& to) {
    const LayoutValue& value = problem_.values[v];
    return known_.Between({from, value.shape}, to, !value.varies);
  }

  struct Version {
    Layout layout;
    uint32_t change = kNone;
  };

  const LayoutProblem& problem_;
  std::vector<NodeProblem>& problems_;
  GraphLayouts result_;
  std::vector<std::vector<NodeIndex>> gradients_;  // By node: its gradient nodes.
  std::vector<uint32_t> readers_;                  // By value: how many inputs read it.
  std::vector<NodeIndex> first_reader_;            // By parameter.
  std::vector<std::vector<Version>> versions_;     // By value: the layouts in which it lies.
  RedistributionCache known_;
};

}  // namespace

GraphLayouts FindLayouts(const LayoutProblem& problem, std::vector<NodeProblem>& problems) {
  return Finder(problem, problems).Run();
}

}  // namespace dt::scheduler
