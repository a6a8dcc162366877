#include "common/plan/check_team.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/ranges.h>

#include "common/graph/graph_index.h"
#include "common/layout/sample_part.h"
#include "common/plan/wait_circle.h"

namespace dt {
namespace {

template <class... Args>
Status Bad(fmt::format_string<Args...> format, Args&&... args) {
  return Internal("plans of a team: {}", fmt::format(format, std::forward<Args>(args)...));
}

// Messages carry numbers of 16 bits.
constexpr int64_t kCommunicationsMax = 1 << 16;

// The communications of a plan that some positions share.
struct Calls {
  const Plan* plan = nullptr;
  std::vector<uint32_t> positions;
  std::map<int64_t, const Node*> nodes;               // By number: those of slices and of steps.
  std::map<int64_t, std::vector<const Node*>> joins;  // By number: the nodes of a bucket.
  std::map<int64_t, uint32_t> form;                   // By number: see FormOf.
};

GroupIndex GroupOf(const Node& node) {
  return static_cast<GroupIndex>(IntAttr(node.attrs, "group", 0));
}

class TeamChecker {
 public:
  TeamChecker(std::span<const TeamMember> members, TraitsLookup traits_of)
      : members_(members), traits_of_(traits_of) {}

  Status Run() {
    for (uint32_t p = 0; p < members_.size(); ++p) {
      const auto known = std::ranges::find(calls_, members_[p].plan, &Calls::plan);
      calls_of_.push_back(static_cast<uint32_t>(known - calls_.begin()));
      if (known == calls_.end()) calls_.emplace_back().plan = members_[p].plan;
      calls_[calls_of_[p]].positions.push_back(p);
    }
    for (Calls& calls : calls_) {
      if (calls.plan->devices != members_.size()) return Bad("they are for other teams");
      DT_TRY_STATUS(Collect(calls));
    }
    for (uint32_t c = 0; c < calls_.size(); ++c) {
      DT_TRY_STATUS(Groups(calls_[c]));
      for (const auto& [number, node] : calls_[c].nodes) DT_TRY_STATUS(Counterparts(c, number));
      for (const auto& [number, bucket] : calls_[c].joins) DT_TRY_STATUS(SameBucket(c, number));
    }
    DT_TRY_STATUS(Sizes());
    for (const auto pass : {&Plan::train, &Plan::evaluate}) {
      for (const Phases& phases : {kSlicesAndJoins, kSteps}) DT_TRY_STATUS(Order(pass, phases));
    }
    return OkStatus();
  }

 private:
  const std::vector<uint32_t>& MembersOf(uint32_t p, GroupIndex group) const {
    return members_[p].groups[group].members;
  }

  Status Collect(Calls& calls) {
    for (const Node& node : calls.plan->graph.nodes) {
      if (traits_of_(node.op).kind != OpKind::kCommunication) continue;
      const int64_t number = IntAttr(node.attrs, "number", -1);
      if (number < 0 || number >= kCommunicationsMax) {
        return Bad("\"{}\" of worker {} has number {}, and there are only {}", node.name,
                   calls.positions.front(), number, kCommunicationsMax);
      }
      if (node.phase == Phase::kJoin) {
        calls.joins[number].push_back(&node);
        continue;
      }
      if (!calls.nodes.emplace(number, &node).second) {
        return Bad("worker {} has two communications of number {}", calls.positions.front(),
                   number);
      }
      const auto next = static_cast<uint32_t>(forms_.size());
      calls.form[number] = forms_.try_emplace(FormOf(*calls.plan, node), next).first->second;
    }
    return OkStatus();
  }

  // Everything about a node on which the check of its sizes depends.
  static std::string FormOf(const Plan& plan, const Node& node) {
    std::string form = fmt::format("{} {} {} {}", node.op, IntAttr(node.attrs, "dim", 0),
                                   IntAttr(node.attrs, "from_dim", 0), GroupOf(node));
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (const ValueIndex v : *values) form += ShapeText(plan.graph, plan.graph.value(v).shape);
    }
    return form;
  }

  // Every worker is in the groups of its communications, and so says every other member.
  Status Groups(const Calls& calls) const {
    for (const auto& [number, node] : calls.nodes) DT_TRY_STATUS(GroupsOf(calls, *node));
    for (const auto& [number, bucket] : calls.joins) {
      for (const Node* const node : bucket) {
        if (node->op != "sum_rows") DT_TRY_STATUS(GroupsOf(calls, *node));
      }
    }
    return OkStatus();
  }
  Status GroupsOf(const Calls& calls, const Node& node) const {
    const GroupIndex group = GroupOf(node);
    const int64_t terms = IntAttr(node.attrs, "terms", int64_t{group});
    for (const uint32_t p : calls.positions) {
      const std::vector<uint32_t>& own = MembersOf(p, group);
      if (std::ranges::find(own, p) == own.end()) {
        return Bad("\"{}\" of worker {} is over [{}], without itself", node.name, p,
                   fmt::join(own, ", "));
      }
      // All members are compared with the first one.
      const uint32_t first = own.front();
      for (const uint32_t m : p == first ? own : std::vector<uint32_t>{first}) {
        for (const int64_t g : {int64_t{group}, terms}) {
          const bool same =
              g < std::ssize(members_[m].groups) && members_[m].groups[static_cast<size_t>(g)] ==
                                                        members_[p].groups[static_cast<size_t>(g)];
          if (same) continue;
          return Bad("\"{}\" of worker {} is over [{}], and group {} of worker {} differs",
                     node.name, p, fmt::join(MembersOf(p, static_cast<GroupIndex>(g)), ", "), g, m);
        }
      }
    }
    return OkStatus();
  }

  // A worker with the plan `c`, and a member of its group with another plan.
  struct Pair {
    uint32_t p = 0, m = 0;
  };
  // One for each plan that members of groups with plan `c` have.
  std::vector<Pair> PairsOf(uint32_t c, GroupIndex group) {
    const auto [known, added] = pairs_.try_emplace({c, group});
    if (!added) return known->second;
    std::set<uint32_t> seen;
    for (const uint32_t p : calls_[c].positions) {
      for (const uint32_t m : MembersOf(p, group)) {
        if (seen.insert(calls_of_[m]).second) known->second.push_back({p, m});
      }
    }
    return known->second;
  }

  Status Counterparts(uint32_t c, int64_t number) {
    const Node& node = *calls_[c].nodes.at(number);
    for (const auto& [p, m] : PairsOf(c, GroupOf(node))) {
      const Calls& other = calls_[calls_of_[m]];
      const auto there = other.nodes.find(number);
      if (there == other.nodes.end()) {
        return Bad("\"{}\" of worker {} waits for worker {}, which has no such communication",
                   node.name, p, m);
      }
      const Node& theirs = *there->second;
      if (theirs.op == node.op && theirs.phase == node.phase && GroupOf(theirs) == GroupOf(node) &&
          IntAttr(theirs.attrs, "dim", 0) == IntAttr(node.attrs, "dim", 0) &&
          TextAttr(theirs.attrs, "reduce", "") == TextAttr(node.attrs, "reduce", "") &&
          other.plan->graph.value(theirs.inputs[0]).dtype ==
              calls_[c].plan->graph.value(node.inputs[0]).dtype) {
        continue;
      }
      return Bad("\"{}\" of worker {} is {} over [{}], \"{}\" of worker {} is {} over [{}]",
                 node.name, p, node.op, fmt::join(MembersOf(p, GroupOf(node)), ", "), theirs.name,
                 m, theirs.op, fmt::join(MembersOf(m, GroupOf(theirs)), ", "));
    }
    return OkStatus();
  }

  // The values of a bucket are known by their order.
  Status SameBucket(uint32_t c, int64_t number) {
    const std::vector<const Node*>& bucket = calls_[c].joins.at(number);
    for (size_t i = 0; i < bucket.size(); ++i) {
      const Node& node = *bucket[i];
      if (node.op == "sum_rows") continue;
      for (const auto& [p, m] : PairsOf(c, GroupOf(node))) {
        const Calls& other = calls_[calls_of_[m]];
        const auto theirs = other.joins.find(number);
        const auto shape = [](const Calls& of, const Node& join) {
          return of.plan->graph.value(join.inputs[0]).shape;
        };
        const bool same = theirs != other.joins.end() && theirs->second.size() == bucket.size() &&
                          theirs->second[i]->op == node.op &&
                          theirs->second[i]->attrs == node.attrs &&
                          shape(other, *theirs->second[i]) == shape(calls_[c], node);
        if (same) continue;
        return Bad("\"{}\" of worker {} is exchanged with worker {}, whose exchange differs",
                   node.name, p, m);
      }
    }
    return OkStatus();
  }

  // ------------------------------------------------------------ sizes

  // Checked once for a group, for a full slice and for one sample.
  Status Sizes() {
    const Plan& any = *calls_.front().plan;
    const int64_t slice = (int64_t{any.batch_size} + any.slices - 1) / any.slices;
    for (uint32_t p = 0; p < members_.size(); ++p) {
      std::set<std::vector<uint32_t>> checked;
      for (const auto& [number, node] : calls_[calls_of_[p]].nodes) {
        const std::vector<uint32_t>& group = MembersOf(p, GroupOf(*node));
        if (group.front() != p) continue;
        std::vector<uint32_t> forms;
        for (const auto& [own, m] : PairsOf(calls_of_[p], GroupOf(*node))) {
          forms.push_back(calls_[calls_of_[m]].form.at(number));
        }
        if (!checked.insert(forms).second) continue;
        for (const int64_t samples : {slice, int64_t{1}}) {
          DT_TRY_STATUS(SizesOf(group, number, samples));
        }
      }
    }
    return OkStatus();
  }

  // The shape of an input or output of a call, for so many samples.
  Shape ShapeOf(uint32_t p, int64_t number, bool input, int64_t samples) const {
    const Node& node = *calls_[calls_of_[p]].nodes.at(number);
    const Graph& graph = calls_[calls_of_[p]].plan->graph;
    const ValueIndex v = input || node.outputs.empty() ? node.inputs[0] : node.outputs[0];
    const auto devices = static_cast<uint32_t>(members_.size());
    Shape shape;
    for (const Dim& dim : graph.value(v).shape) {
      const SamplePart part = SamplePartOf(graph.symbols[dim.symbol]);
      const int64_t size = dim.symbol == kConstant ? 1
                           : dim.symbol == kBatch  ? samples
                                                   : SamplesOf(part, samples, devices, p).size();
      shape.push_back(dim.times * size);
    }
    return shape;
  }

  // Along `dim`, the whole of every member is as long as the parts of all.
  Status Fits(const std::vector<uint32_t>& members, int64_t number, int64_t samples, bool gathers,
              size_t dim) const {
    int64_t parts = 0;
    for (const uint32_t m : members) parts += ShapeOf(m, number, gathers, samples).at(dim);
    const Shape first = ShapeOf(members.front(), number, !gathers, samples);
    for (const uint32_t m : members) {
      const Shape whole = ShapeOf(m, number, !gathers, samples);
      if (whole.at(dim) == parts && whole.at(dim) == first.at(dim)) continue;
      return Bad("\"{}\" of worker {} has {} along dimension {}, and the parts of its group {}",
                 calls_[calls_of_[m]].nodes.at(number)->name, m, whole.at(dim), dim, parts);
    }
    return OkStatus();
  }

  Status SizesOf(const std::vector<uint32_t>& members, int64_t number, int64_t samples) const {
    const Node& node = *calls_[calls_of_[members.front()]].nodes.at(number);
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
    const Shape first = ShapeOf(members.front(), number, true, samples);
    for (const uint32_t m : members) {
      const Shape own = ShapeOf(m, number, true, samples);
      if (own == first) continue;
      return Bad("\"{}\" has [{}] at worker {} and [{}] at worker {}", node.name,
                 fmt::join(first, ", "), members.front(), fmt::join(own, ", "), m);
    }
    return OkStatus();
  }

  // ------------------------------------------------------------ order

  // Each worker has its communications in the order of its list; members come to one together.
  Status Order(std::vector<Subgraph> Plan::*pass, const Phases& phases) {
    WaitCircle circle;
    std::unordered_map<uint64_t, uint32_t> vertices;
    std::vector<Pair> named;  // By vertex: a position and a node of its plan.
    for (uint32_t p = 0; p < members_.size(); ++p) {
      uint32_t before = kNone;
      for (const NodeIndex n : InOrder(members_[p].plan->*pass, phases)) {
        const auto next = static_cast<uint32_t>(named.size());
        const uint64_t key = KeyOf(p, members_[p].plan->graph.nodes[n]);
        const auto [vertex, added] = vertices.try_emplace(key, next);
        if (added) named.push_back({p, n});
        if (before != kNone) circle.Add(before, vertex->second);
        before = vertex->second;
      }
    }
    std::string text;
    for (const uint32_t v : circle.Find(static_cast<uint32_t>(named.size()))) {
      const auto& [p, n] = named[v];
      text += fmt::format("{}\"{}\" of worker {}", text.empty() ? "" : " before ",
                          members_[p].plan->graph.nodes[n].name, p);
    }
    return text.empty() ? OkStatus() : Bad("workers would wait for one another: {}", text);
  }
  static std::vector<NodeIndex> InOrder(const std::vector<Subgraph>& pass, const Phases& phases) {
    std::vector<NodeIndex> nodes;
    for (const Subgraph& subgraph : pass) {
      if (subgraph.stream != Stream::kComm || !phases.Has(subgraph.phase)) continue;
      nodes.insert(nodes.end(), subgraph.nodes.begin(), subgraph.nodes.end());
    }
    return nodes;
  }
  // Groups of one number are disjoint, so their first members tell them apart.
  uint64_t KeyOf(uint32_t p, const Node& node) const {
    const uint32_t first = node.op == "sum_rows" ? 0 : MembersOf(p, GroupOf(node)).front();
    const auto number = static_cast<uint64_t>(IntAttr(node.attrs, "number", 0));
    return ((uint64_t{node.phase == Phase::kJoin} << 16 | number) << 32) | first;
  }

  const std::span<const TeamMember> members_;
  const TraitsLookup traits_of_;
  std::vector<Calls> calls_;                         // By plan.
  std::vector<uint32_t> calls_of_;                   // By position.
  std::unordered_map<std::string, uint32_t> forms_;  // Numbered.
  std::map<std::pair<uint32_t, GroupIndex>, std::vector<Pair>> pairs_;
};

}  // namespace

Status CheckTeam(std::span<const TeamMember> members, TraitsLookup traits_of) {
  return TeamChecker(members, traits_of).Run();
}

Status CheckTeam(std::span<const Plan> plans, TraitsLookup traits_of) {
  std::vector<TeamMember> members;
  for (const Plan& plan : plans) {
    if (plan.position != members.size()) {
      return Bad("plan {} is for worker {} of {}", members.size(), plan.position, plan.devices);
    }
    members.push_back({&plan, plan.graph.groups});
  }
  return CheckTeam(members, traits_of);
}

}  // namespace dt
