#include "scheduler/passes/placement/placement_constraints.h"

#include <algorithm>
#include <set>

#include "common/base/text.h"
#include "scheduler/composites/infer_node.h"

namespace dt::scheduler {
namespace {

constexpr std::string_view kRemedy =
    "set cluster.devices to auto, cuda or emulated, or parallel.fallback to cpu";
constexpr std::string_view kOtherRemedy =
    "say cpu, or set parallel.fallback to cpu or cluster.devices to emulated";

std::string At(const SourceMark& mark) {
  return mark.line > 0 ? fmt::format(" at {}:{}", mark.file, mark.line) : "";
}

// Matches the node's own name or that of a node it was made from: deep.0.matmul by deep.0 and by
// deep.
bool IsMeant(std::string_view name, const PlaceRule& rule) {
  for (size_t end = name.find('.'); end != name.npos; end = name.find('.', end + 1)) {
    if (MatchesPattern(name.substr(0, end), rule.match)) return true;
  }
  return MatchesPattern(name, rule.match);
}

const PlaceRule* RuleFor(Placed of, std::string_view name, const JobConfig& job) {
  const auto& rules = job.parallel.place;
  const auto rule = std::ranges::find_if(
      rules, [&](const PlaceRule& r) { return r.of == of && IsMeant(name, r); });
  return rule == rules.end() ? nullptr : &*rule;
}

// A pattern that matches nothing is a mistake, which would otherwise only be noticed by its
// slowness.
void CheckRules(const Graph& graph, const JobConfig& job, std::vector<Status>& mistakes) {
  const auto operator_meant = [&](const PlaceRule& rule) {
    return std::ranges::any_of(graph.nodes, [&](const Node& node) {
      return node.phase == Phase::kSlice && IsMeant(node.name, rule);
    });
  };
  const auto weight_meant = [&](const PlaceRule& rule) {
    return std::ranges::any_of(graph.parameters, [&](const ParameterSpec& p) {
      return p.trained && IsMeant(graph.value(p.value).name, rule);
    });
  };
  for (const PlaceRule& rule : job.parallel.place) {
    if (rule.of == Placed::kTables) continue;  // Checked when the job was read.
    const bool weights = rule.of == Placed::kWeights;
    if (weights ? weight_meant(rule) : operator_meant(rule)) continue;
    mistakes.push_back(
        AtMark(WithHint(Invalid("{}: no {} matches \"{}\"", rule.path,
                                weights ? "weight" : "node or operator", rule.match),
                        "`dovetail plan JOB --after differentiate` shows their names"),
               rule.mark));
  }
}

}  // namespace

Result<PlacementConstraints> PlacementConstraints::Find(const GraphIndex& index,
                                                        const JobConfig& job,
                                                        const Options& options) {
  const Graph& graph = index.graph();
  std::vector<Status> mistakes;
  CheckRules(graph, job, mistakes);
  PlacementConstraints constraints(index, job, options);
  // A tag or rule applies to many nodes and weights; each is reported once.
  std::set<std::string> sayings;
  const auto note = [&](Status status, const std::string& saying) {
    if (!status.ok() && sayings.insert(saying).second) mistakes.push_back(std::move(status));
  };
  for (const ParameterSpec& p : graph.parameters) {
    if (p.trained) note(constraints.CheckWeight(p.value), constraints.SayingOfWeight(p.value));
  }
  const auto count = static_cast<NodeIndex>(graph.nodes.size());
  for (NodeIndex n = 0; n < count; ++n) {
    if (graph.nodes[n].phase != Phase::kSlice) continue;
    const Said said = constraints.WhoSays(n);
    Status status = constraints.FindSliceNode(n);
    // A gradient repeats the tag of its forward node, but is not in the job file.
    if (!said.mark.file.empty() || mistakes.empty())
      note(std::move(status), said.by + At(said.mark));
  }
  if (mistakes.size() == 1) return mistakes.front();
  if (!mistakes.empty()) return Combined(mistakes);
  for (NodeIndex n = count; n-- > 0;) constraints.FindBesideReader(n);
  for (const ParameterSpec& p : graph.parameters) {
    constraints.of_value_[p.value] = constraints.OfLasting(p);
  }
  // A table on the worker is where its rows are taken from it.
  for (const TableUse& table : graph.tables) {
    if (table.store == kNone) continue;
    constraints.of_value_[table.store] = constraints.of_node_[graph.value(table.rows).producer];
  }
  for (NodeIndex n = 0; n < count; ++n) {
    if (graph.nodes[n].phase != Phase::kSlice) constraints.of_node_[n] = constraints.OfStep(n);
  }
  return constraints;
}

PlacementConstraints::PlacementConstraints(const GraphIndex& index, const JobConfig& job,
                                           const Options& options)
    : index_(index),
      graph_(index.graph()),
      job_(job),
      options_(options),
      of_node_(graph_.nodes.size()),
      of_value_(graph_.values.size()),
      why_(graph_.nodes.size()) {}

Device PlacementConstraints::SaidOfWeight(ValueIndex weight) const {
  const PlaceRule* const rule = RuleFor(Placed::kWeights, graph_.value(weight).name, job_);
  return rule != nullptr ? rule->device : job_.optimizer.device;
}

Status PlacementConstraints::CheckWeight(ValueIndex weight) {
  if (SaidOfWeight(weight) != Device::kGpu) return OkStatus();
  const std::string why = options_.tags_hold ? LackingForUpdate(weight) : options_.unheld;
  if (why.empty()) return OkStatus();
  if (job_.parallel.fall_back_to_cpu) {
    fell_back_ = why;
    return OkStatus();
  }
  const PlaceRule* const rule = RuleFor(Placed::kWeights, graph_.value(weight).name, job_);
  return AtMark(WithHint(Invalid("{}, and {}", SayingOfWeight(weight), why),
                         options_.tags_hold ? kOtherRemedy : kRemedy),
                rule != nullptr ? rule->mark : SourceMark());
}

std::string PlacementConstraints::SayingOfWeight(ValueIndex weight) const {
  const PlaceRule* const rule = RuleFor(Placed::kWeights, graph_.value(weight).name, job_);
  return rule != nullptr ? fmt::format("{}: weights \"{}\" on gpu", rule->path, rule->match)
                         : "optimizer.device: gpu";
}

bool PlacementConstraints::HasKernel(std::string_view op) const {
  return std::ranges::find(options_.without_kernel, op) == options_.without_kernel.end();
}

std::string PlacementConstraints::LackingOf(std::span<const NodeIndex> nodes) const {
  for (const NodeIndex n : nodes) {
    const std::string& op = graph_.nodes[n].op;
    if (!HasKernel(op)) return fmt::format("operator {} has no kernel there", op);
  }
  return "";
}

// The nodes that prepare a weight's gradient for its update read the weight as well, so the
// weight's readers include them.
std::string PlacementConstraints::LackingForUpdate(ValueIndex weight) const {
  std::vector<NodeIndex> nodes;
  for (const NodeIndex n : index_.readers(weight)) {
    if (graph_.nodes[n].phase != Phase::kSlice) nodes.push_back(n);
  }
  return LackingOf(nodes);
}

std::string PlacementConstraints::Unheld(NodeIndex n) const {
  if (!options_.tags_hold) return options_.unheld;
  std::string lacking = LackingOf({&n, 1});
  if (const TableUse* const table = TableTakenBy(n); table != nullptr && lacking.empty()) {
    lacking = LackingOf(index_.writers(table->store));
  }
  return lacking.empty() ? LackingOf(index_.gradients(n)) : lacking;
}

const TableUse* PlacementConstraints::TableTakenBy(NodeIndex n) const {
  const auto table = std::ranges::find_if(graph_.tables, [&](const TableUse& use) {
    return use.store != kNone && graph_.value(use.rows).producer == n;
  });
  return table == graph_.tables.end() ? nullptr : &*table;
}

Status PlacementConstraints::FindSliceNode(NodeIndex n) {
  const Node& node = graph_.nodes[n];
  PlacementConstraint& constraint = of_node_[n];
  if (index_.Is(n, OpKind::kCommunication)) {
    const NodeIndex from = graph_.value(node.inputs[0]).producer;
    if (options_.cards_communicate && from != kNone) constraint = of_node_[from];
    why_[n] = options_.cards_communicate ? "with what it sends" : "communication";
    return OkStatus();
  }
  DT_TRY(const Device said, SaidOf(n));
  if (said != Device::kAuto) {
    constraint.device = said;
    return OkStatus();
  }
  std::string why;
  if (node.forward != kNone) {
    constraint = of_node_[node.forward];
    why = "with its forward node";
  } else if (options_.automatic) {
    constraint = {Device::kAuto, n};
  } else {
    why = "auto";
  }
  if (why_[n].empty()) why_[n] = std::move(why);
  return OkStatus();
}

Result<Device> PlacementConstraints::SaidOf(NodeIndex n) {
  const Node& node = graph_.nodes[n];
  const Said said = WhoSays(n);
  if (said.device == Device::kAuto) return said.device;
  const std::string by = said.by + At(said.mark);
  // Allowed only with staleness above 0; checked when the job file was read.
  if (said.device == Device::kPs) {
    why_[n] = by + " ps: its weights are on servers";
    return Device::kAuto;
  }
  const std::string unheld = said.device == Device::kCpu ? "" : Unheld(n);
  if (unheld.empty()) {
    why_[n] = by;
    return said.device;
  }
  if (!job_.parallel.fall_back_to_cpu) {
    return AboutNode(WithHint(Invalid("{} gpu, and {}", said.by, unheld),
                              options_.tags_hold ? kOtherRemedy : kRemedy),
                     node.name, said.mark);
  }
  why_[n] = fmt::format("{} gpu, but {}", by, unheld);
  fell_back_ = fmt::format("{}: {}", node.name, unheld);
  return Device::kAuto;
}

PlacementConstraints::Said PlacementConstraints::WhoSays(NodeIndex n) const {
  const auto of_rule = [](Device device, std::string_view match, const SourceMark& mark) {
    return Said{device, fmt::format("parallel.place \"{}\"", match), mark};
  };
  const Node& node = graph_.nodes[n];
  if (node.device == Device::kAuto) {
    const PlaceRule* const rule = RuleFor(Placed::kOperators, node.name, job_);
    return rule == nullptr ? Said{} : of_rule(rule->device, rule->match, rule->mark);
  }
  if (const TableUse* const use = TableTakenBy(n); use != nullptr) {
    const auto table = std::ranges::find(job_.model.tables, use->name, &TableConfig::name);
    if (!table->place_match.empty()) {
      return of_rule(node.device, table->place_match, table->place_mark);
    }
  }
  return {node.device, "tagged", node.mark};
}

// A node without inputs (the seed of a gradient) runs on the device of its last reader.
void PlacementConstraints::FindBesideReader(NodeIndex n) {
  const Node& node = graph_.nodes[n];
  if (!node.inputs.empty() || node.phase != Phase::kSlice || !HasKernel(node.op)) return;
  NodeIndex last = kNone;
  for (const ValueIndex v : node.outputs) {
    for (const NodeIndex reader : index_.readers(v)) {
      if (graph_.nodes[reader].phase != Phase::kSlice) continue;
      if (last == kNone || reader > last) last = reader;
    }
  }
  if (last == kNone) return;
  of_node_[n] = of_node_[last];
  why_[n] = "where it is read";
}

// Weights and their optimizer's state are on the device that runs the optimizer: the one that the
// job names, or that of the first node that reads the weights. State that is not trained is on the
// CPU, where slices are summed.
PlacementConstraint PlacementConstraints::OfLasting(const ParameterSpec& p) const {
  const ValueIndex of = p.trained ? p.value : UpdatedWith(p.value);
  if (of == kNone || job_.train.asynchronous()) return {};
  const Device said = SaidOfWeight(of);
  if (said == Device::kCpu || !LackingForUpdate(of).empty()) return {};
  if (said == Device::kGpu && options_.tags_hold) return {said, kNone};
  for (const NodeIndex n : index_.readers(of)) {
    if (graph_.nodes[n].phase == Phase::kSlice) return of_node_[n];
  }
  return {};
}

// The weight whose update also changes this state; kNone if there is none.
ValueIndex PlacementConstraints::UpdatedWith(ValueIndex state) const {
  for (const NodeIndex n : index_.writers(state)) {
    for (const ValueIndex v : graph_.nodes[n].inputs) {
      if (graph_.value(v).kind == ValueKind::kParameter) return v;
    }
  }
  return kNone;
}

// Updates, and nodes that prepare a gradient for one, run on the device of the first weight, state
// or table that they read. Nodes that read only gradients run where the largest weight is, since
// most bytes of gradients are likely to be there.
PlacementConstraint PlacementConstraints::OfStep(NodeIndex n) const {
  const Node& node = graph_.nodes[n];
  if (index_.Is(n, OpKind::kCommunication)) return {Device::kCpu, kNone};
  for (const ValueIndex v : node.inputs) {
    const ValueKind kind = graph_.value(v).kind;
    if (kind != ValueKind::kNode && kind != ValueKind::kInput) return of_value_[v];
  }
  return HasKernel(node.op) ? OfLargestWeights() : PlacementConstraint();
}

PlacementConstraint PlacementConstraints::OfLargestWeights() const {
  PlacementConstraint largest;
  double most = -1;
  for (const ParameterSpec& p : graph_.parameters) {
    if (!p.trained || p.grad == kNone) continue;
    double elements = 1;  // Parameters have no symbolic dimensions.
    for (const Dim& dim : graph_.value(p.value).shape) elements *= static_cast<double>(dim.times);
    if (elements <= most) continue;
    most = elements;
    largest = of_value_[p.value];
  }
  return largest;
}

}  // namespace dt::scheduler
