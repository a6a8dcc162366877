#include "common/plan/check_team.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <fmt/ranges.h>

#include "common/graph/graph_index.h"
#include "common/layout/sample_part.h"

namespace dt {
namespace {

template <class... Args>
Status Bad(fmt::format_string<Args...> format, Args&&... args) {
  return Internal("plans of a team: {}", fmt::format(format, std::forward<Args>(args)...));
}

// Messages carry numbers of 16 bits.
constexpr int64_t kCommunicationsMax = 1 << 16;

// A communication in the plan of one position.
struct Call {
  const Node* node = nullptr;
  NodeIndex index = kNone;
};

class TeamChecker {
 public:
  TeamChecker(std::span<const Plan> plans, TraitsLookup traits_of)
      : plans_(plans), traits_of_(traits_of), calls_(plans.size()), joins_(plans.size()) {}

  Status Run() {
    for (uint32_t p = 0; p < plans_.size(); ++p) {
      const Plan& plan = plans_[p];
      if (plan.position != p || plan.devices != plans_.size()) {
        return Bad("plan {} is for worker {} of {}", p, plan.position, plan.devices);
      }
      DT_TRY_STATUS(Collect(p));
    }
    for (uint32_t p = 0; p < plans_.size(); ++p) {
      for (const auto& [number, call] : calls_[p]) DT_TRY_STATUS(Counterparts(p, number));
      for (const auto& [number, bucket] : joins_[p]) DT_TRY_STATUS(SameBucket(p, number));
    }
    for (const auto pass : {&Plan::train, &Plan::evaluate}) {
      for (const Phases& phases : {kSlicesAndJoins, kSteps}) DT_TRY_STATUS(Order(pass, phases));
    }
    return OkStatus();
  }

 private:
  Status Collect(uint32_t p) {
    const std::vector<Node>& nodes = plans_[p].graph.nodes;
    for (NodeIndex n = 0; n < nodes.size(); ++n) {
      if (traits_of_(nodes[n].op).kind != OpKind::kCommunication) continue;
      const int64_t number = IntAttr(nodes[n].attrs, "number", -1);
      if (number < 0 || number >= kCommunicationsMax) {
        return Bad("\"{}\" of worker {} has number {}, and there are only {}", nodes[n].name, p,
                   number, kCommunicationsMax);
      }
      if (nodes[n].phase == Phase::kJoin) {
        joins_[p][number].push_back(&nodes[n]);
        continue;
      }
      if (!calls_[p].emplace(number, Call{&nodes[n], n}).second) {
        return Bad("worker {} has two communications of number {}", p, number);
      }
    }
    return OkStatus();
  }

  // The positions that take part, all of which exist.
  Result<std::vector<int64_t>> GroupOf(uint32_t p, const Node& node) const {
    std::vector<int64_t> group = IntsAttr(node.attrs, "group");
    if (group.empty()) group = {int64_t{p}};
    for (const int64_t member : group) {
      if (member < 0 || member >= std::ssize(plans_)) {
        return Bad("\"{}\" of worker {} names worker {}", node.name, p, member);
      }
    }
    if (std::ranges::find(group, int64_t{p}) == group.end()) {
      return Bad("\"{}\" of worker {} is over [{}], without itself", node.name, p,
                 fmt::join(group, ", "));
    }
    return group;
  }

  Status Counterparts(uint32_t p, int64_t number) const {
    const Node& node = *calls_[p].at(number).node;
    DT_TRY(const std::vector<int64_t> group, GroupOf(p, node));
    std::vector<uint32_t> members;
    for (const int64_t m : group) {
      const auto other = static_cast<uint32_t>(m);
      members.push_back(other);
      const auto there = calls_[other].find(number);
      if (there == calls_[other].end()) {
        return Bad("\"{}\" of worker {} waits for worker {}, which has no such communication",
                   node.name, p, other);
      }
      const Node& theirs = *there->second.node;
      if (theirs.op == node.op && theirs.phase == node.phase &&
          IntsAttr(theirs.attrs, "group") == IntsAttr(node.attrs, "group") &&
          IntAttr(theirs.attrs, "dim", 0) == IntAttr(node.attrs, "dim", 0) &&
          TextAttr(theirs.attrs, "reduce", "") == TextAttr(node.attrs, "reduce", "") &&
          plans_[other].graph.value(theirs.inputs[0]).dtype ==
              plans_[p].graph.value(node.inputs[0]).dtype) {
        continue;
      }
      return Bad("\"{}\" of worker {} is {} over [{}], \"{}\" of worker {} is {} over [{}]",
                 node.name, p, node.op, fmt::join(group, ", "), theirs.name, other, theirs.op,
                 fmt::join(IntsAttr(theirs.attrs, "group"), ", "));
    }
    if (members.front() != p) return OkStatus();  // Sizes are checked once for a group.
    const int64_t slice = (int64_t{plans_[p].batch_size} + plans_[p].slices - 1) / plans_[p].slices;
    for (const int64_t samples : {slice, int64_t{1}}) {
      DT_TRY_STATUS(Sizes(members, number, samples));
    }
    return OkStatus();
  }

  // The shape of an input or output of a call, for so many samples.
  Shape ShapeOf(uint32_t p, int64_t number, bool input, int64_t samples) const {
    const Node& node = *calls_[p].at(number).node;
    const Graph& graph = plans_[p].graph;
    const ValueIndex v = input || node.outputs.empty() ? node.inputs[0] : node.outputs[0];
    Shape shape;
    for (const Dim& dim : graph.value(v).shape) {
      const SamplePart part = SamplePartOf(graph.symbols[dim.symbol]);
      const int64_t size = dim.symbol == kConstant ? 1
                           : dim.symbol == kBatch
                               ? samples
                               : SamplesOf(part, samples, plans_[p].devices, p).size();
      shape.push_back(dim.times * size);
    }
    return shape;
  }

  // Along `dim`, the whole of every member is as long as the parts of all.
  Status Fits(const std::vector<uint32_t>& members, int64_t number, int64_t samples, bool gathers,
              size_t dim) const {
    int64_t parts = 0;
    for (const uint32_t m : members) parts += ShapeOf(m, number, gathers, samples).at(dim);
    for (const uint32_t m : members) {
      Shape whole = ShapeOf(m, number, !gathers, samples);
      const Shape first = ShapeOf(members.front(), number, !gathers, samples);
      if (whole.at(dim) == parts && whole.at(dim) == first.at(dim)) continue;
      return Bad("\"{}\" of worker {} has {} along dimension {}, and the parts of its group {}",
                 calls_[m].at(number).node->name, m, whole.at(dim), dim, parts);
    }
    return OkStatus();
  }

  Status Sizes(const std::vector<uint32_t>& members, int64_t number, int64_t samples) const {
    const Node& node = *calls_[members.front()].at(number).node;
    const auto dim = static_cast<size_t>(IntAttr(node.attrs, "dim", 0));
    if (node.op == "all_gather") return Fits(members, number, samples, true, dim);
    if (node.op == "reduce_scatter" || node.op == "take_part") {
      return Fits(members, number, samples, false, dim);
    }
    if (node.op == "all_to_all") {
      const auto from = static_cast<size_t>(IntAttr(node.attrs, "from_dim", 0));
      DT_TRY_STATUS(Fits(members, number, samples, false, dim));
      return Fits(members, number, samples, true, from);
    }
    for (const uint32_t m : members) {
      const Shape own = ShapeOf(m, number, true, samples);
      const Shape first = ShapeOf(members.front(), number, true, samples);
      if (own == first) continue;
      return Bad("\"{}\" has [{}] at worker {} and [{}] at worker {}", node.name,
                 fmt::join(first, ", "), members.front(), fmt::join(own, ", "), m);
    }
    return OkStatus();
  }

  // The values of a bucket are known by their order.
  Status SameBucket(uint32_t p, int64_t number) const {
    const std::vector<const Node*>& bucket = joins_[p].at(number);
    for (size_t i = 0; i < bucket.size(); ++i) {
      const Node& node = *bucket[i];
      DT_TRY(const std::vector<int64_t> group, GroupOf(p, node));
      for (const int64_t m : group) {
        const auto other = static_cast<uint32_t>(m);
        const auto theirs = joins_[other].find(number);
        const bool same = theirs != joins_[other].end() && theirs->second.size() == bucket.size() &&
                          theirs->second[i]->op == node.op &&
                          theirs->second[i]->attrs == node.attrs &&
                          LocalShape(other, *theirs->second[i]) == LocalShape(p, node);
        if (same) continue;
        return Bad("\"{}\" of worker {} is exchanged with worker {}, whose exchange differs",
                   node.name, p, m);
      }
    }
    return OkStatus();
  }
  SymShape LocalShape(uint32_t p, const Node& node) const {
    return plans_[p].graph.value(node.inputs[0]).shape;
  }

  // Whether the nodes of a pass can end in some order: each after the one before it in its stream,
  // after the subgraphs that its own waits for, and members of a communication together.
  Status Order(std::vector<Subgraph> Plan::*pass, const Phases& phases) {
    vertices_.clear();
    names_.clear();
    follow_.clear();
    std::vector<std::vector<uint32_t>> of_node;
    for (const Plan& plan : plans_) of_node.emplace_back(plan.graph.nodes.size(), kNone);
    for (uint32_t p = 0; p < plans_.size(); ++p) {
      for (const Subgraph& subgraph : plans_[p].*pass) {
        if (!phases.Has(subgraph.phase)) continue;
        for (const NodeIndex n : subgraph.nodes) of_node[p][n] = VertexOf(p, n);
      }
    }
    for (uint32_t p = 0; p < plans_.size(); ++p) AddOrder(plans_[p].*pass, phases, of_node[p]);
    return FindCircle();
  }

  uint32_t VertexOf(uint32_t p, NodeIndex n) {
    const Node& node = plans_[p].graph.nodes[n];
    if (traits_of_(node.op).kind == OpKind::kCommunication) {
      // Groups of one number are disjoint, so its first member tells them apart.
      const std::vector<int64_t> group = IntsAttr(node.attrs, "group");
      const std::tuple key{node.phase, IntAttr(node.attrs, "number", -1),
                           group.empty() ? int64_t{p} : group.front()};
      const auto [known, added] = vertices_.emplace(key, static_cast<uint32_t>(names_.size()));
      if (!added) return known->second;
    }
    names_.push_back(fmt::format("\"{}\" of worker {}", node.name, p));
    follow_.emplace_back();
    return static_cast<uint32_t>(names_.size() - 1);
  }

  void AddOrder(const std::vector<Subgraph>& pass, const Phases& phases,
                const std::vector<uint32_t>& vertex) {
    std::array<uint32_t, kStreams> last;
    last.fill(kNone);
    for (const Subgraph& subgraph : pass) {
      if (!phases.Has(subgraph.phase)) continue;
      const uint32_t first = vertex[subgraph.nodes.front()];
      for (const uint32_t w : subgraph.waits) {
        follow_[vertex[pass[w].nodes.back()]].push_back(first);
      }
      for (const NodeIndex n : subgraph.nodes) {
        uint32_t& before = last[static_cast<size_t>(subgraph.stream)];
        if (before != kNone && before != vertex[n]) follow_[before].push_back(vertex[n]);
        before = vertex[n];
      }
    }
  }

  Status FindCircle() const {
    std::vector<uint32_t> waits(names_.size(), 0), ready;
    for (const std::vector<uint32_t>& next : follow_) {
      for (const uint32_t v : next) ++waits[v];
    }
    for (uint32_t v = 0; v < waits.size(); ++v) {
      if (waits[v] == 0) ready.push_back(v);
    }
    size_t ended = 0;
    for (; !ready.empty(); ++ended) {
      const uint32_t v = ready.back();
      ready.pop_back();
      for (const uint32_t next : follow_[v]) {
        if (--waits[next] == 0) ready.push_back(next);
      }
    }
    if (ended == names_.size()) return OkStatus();
    return Bad("workers would wait for one another: {}", CircleText(waits));
  }

  // Walks back along what is still waited for until a vertex comes again.
  std::string CircleText(const std::vector<uint32_t>& waits) const {
    std::vector<uint32_t> from(names_.size(), kNone);
    for (uint32_t v = 0; v < follow_.size(); ++v) {
      for (const uint32_t next : follow_[v]) {
        if (waits[v] > 0 && waits[next] > 0) from[next] = v;
      }
    }
    uint32_t at = 0;
    while (waits[at] == 0 || from[at] == kNone) ++at;
    std::vector<uint32_t> path;
    while (std::ranges::find(path, at) == path.end()) {
      path.push_back(at);
      at = from[at];
    }
    std::string text = names_[at];
    for (size_t i = path.size(); i-- > 0;) {
      text += " before " + names_[path[i]];
      if (path[i] == at) break;
    }
    return text;
  }

  const std::span<const Plan> plans_;
  const TraitsLookup traits_of_;
  std::vector<std::map<int64_t, Call>> calls_;  // By position and number.
  // By position and number: the nodes of a bucket.
  std::vector<std::map<int64_t, std::vector<const Node*>>> joins_;
  // The vertices of the current pass; the members of a communication share one.
  std::map<std::tuple<Phase, int64_t, int64_t>, uint32_t> vertices_;
  std::vector<std::string> names_;
  std::vector<std::vector<uint32_t>> follow_;
};

}  // namespace

Status CheckTeam(std::span<const Plan> plans, TraitsLookup traits_of) {
  return TeamChecker(plans, traits_of).Run();
}

}  // namespace dt
