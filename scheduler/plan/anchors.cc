#include "scheduler/plan/anchors.h"

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

// By its own name, or that of what it was made of: deep.0.matmul by deep.0, and by deep.
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

// A pattern that matches nothing is a slip of the pen, and would be missed only by its speed.
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
    if (rule.of == Placed::kTables) continue;  // Checked as the job was read.
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

Result<Anchors> Anchors::Find(const Graph& graph, const JobConfig& job, const Options& options) {
  std::vector<Status> mistakes;
  CheckRules(graph, job, mistakes);
  Anchors anchors(graph, job, options);
  // A tag or a rule holds for many nodes and weights: each is told of once.
  std::set<std::string> sayings;
  const auto note = [&](Status status, const std::string& saying) {
    if (!status.ok() && sayings.insert(saying).second) mistakes.push_back(std::move(status));
  };
  for (const ParameterSpec& p : graph.parameters) {
    if (p.trained) note(anchors.CheckWeight(p.value), anchors.SayingOfWeight(p.value));
  }
  const auto count = static_cast<NodeIndex>(graph.nodes.size());
  for (NodeIndex n = 0; n < count; ++n) {
    if (graph.nodes[n].phase != Phase::kSlice) continue;
    const Said said = anchors.WhoSays(n);
    Status status = anchors.FindSliceNode(n);
    // A gradient repeats the tag of its forward node, but has no place in the job file.
    if (!said.mark.file.empty() || mistakes.empty())
      note(std::move(status), said.by + At(said.mark));
  }
  if (mistakes.size() == 1) return mistakes.front();
  if (!mistakes.empty()) return Together(mistakes);
  for (NodeIndex n = count; n-- > 0;) anchors.FindBesideReader(n);
  for (const ParameterSpec& p : graph.parameters) {
    anchors.of_value_[p.value] = anchors.OfLasting(p);
  }
  // A table on the worker lies where its rows are taken from it.
  for (const TableUse& table : graph.tables) {
    if (table.store == kNone) continue;
    anchors.of_value_[table.store] = anchors.of_node_[graph.value(table.rows).producer];
  }
  for (NodeIndex n = 0; n < count; ++n) {
    if (graph.nodes[n].phase == Phase::kStep) anchors.of_node_[n] = anchors.OfStep(graph.nodes[n]);
  }
  return anchors;
}

Anchors::Anchors(const Graph& graph, const JobConfig& job, const Options& options)
    : graph_(graph),
      job_(job),
      options_(options),
      of_node_(graph.nodes.size()),
      of_value_(graph.values.size()),
      why_(graph.nodes.size()) {}

Device Anchors::SaidOfWeight(ValueIndex weight) const {
  const PlaceRule* const rule = RuleFor(Placed::kWeights, graph_.value(weight).name, job_);
  return rule != nullptr ? rule->device : job_.optimizer.device;
}

Status Anchors::CheckWeight(ValueIndex weight) {
  if (SaidOfWeight(weight) != Device::kGpu || (options_.tags_hold && CanUpdate())) {
    return OkStatus();
  }
  const std::string_view op = HasKernel("update") ? "add_l2" : "update";
  const std::string why =
      options_.tags_hold ? fmt::format("operator {} has no kernel there", op) : options_.unheld;
  if (job_.parallel.fall_back_to_cpu) {
    fell_back_ = why;
    return OkStatus();
  }
  const PlaceRule* const rule = RuleFor(Placed::kWeights, graph_.value(weight).name, job_);
  return AtMark(WithHint(Invalid("{}, and {}", SayingOfWeight(weight), why),
                         options_.tags_hold ? kOtherRemedy : kRemedy),
                rule != nullptr ? rule->mark : SourceMark());
}

std::string Anchors::SayingOfWeight(ValueIndex weight) const {
  const PlaceRule* const rule = RuleFor(Placed::kWeights, graph_.value(weight).name, job_);
  return rule != nullptr ? fmt::format("{}: weights \"{}\" on gpu", rule->path, rule->match)
                         : "optimizer.device: gpu";
}

bool Anchors::HasKernel(std::string_view op) const {
  return std::ranges::find(options_.without_kernel, op) == options_.without_kernel.end();
}

std::string Anchors::Unheld(NodeIndex n) const {
  if (!options_.tags_hold) return options_.unheld;
  const auto lacking = [](std::string_view op) {
    return fmt::format("operator {} has no kernel there", op);
  };
  const Node& node = graph_.nodes[n];
  if (!HasKernel(node.op)) return lacking(node.op);
  if (node.op == "take_rows" && !HasKernel("update_rows")) return lacking("update_rows");
  for (const Node& gradient : graph_.nodes) {
    if (gradient.forward == n && !HasKernel(gradient.op)) return lacking(gradient.op);
  }
  return "";
}

Status Anchors::FindSliceNode(NodeIndex n) {
  const Node& node = graph_.nodes[n];
  DT_TRY(const Device said, SaidOf(n));
  Anchor& anchor = of_node_[n];
  if (said != Device::kAuto) {
    anchor.device = said;
    return OkStatus();
  }
  std::string why;
  if (node.forward != kNone) {
    anchor = of_node_[node.forward];
    why = "with its forward node";
  } else if (options_.automatic) {
    anchor = {Device::kAuto, n};
  } else {
    why = "auto";
  }
  if (why_[n].empty()) why_[n] = std::move(why);
  return OkStatus();
}

Result<Device> Anchors::SaidOf(NodeIndex n) {
  const Node& node = graph_.nodes[n];
  const Said said = WhoSays(n);
  if (said.device == Device::kAuto) return said.device;
  const std::string by = said.by + At(said.mark);
  if (said.device == Device::kPs) {  // With staleness above 0: so the job file was checked.
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

Anchors::Said Anchors::WhoSays(NodeIndex n) const {
  const auto of_rule = [](Device device, std::string_view match, const SourceMark& mark) {
    return Said{device, fmt::format("parallel.place \"{}\"", match), mark};
  };
  const Node& node = graph_.nodes[n];
  if (node.device == Device::kAuto) {
    const PlaceRule* const rule = RuleFor(Placed::kOperators, node.name, job_);
    return rule == nullptr ? Said{} : of_rule(rule->device, rule->match, rule->mark);
  }
  if (node.op == "take_rows") {
    const auto use = std::ranges::find(graph_.tables, node.outputs[0], &TableUse::rows);
    const auto table = std::ranges::find(job_.model.tables, use->name, &TableConfig::name);
    if (!table->place_match.empty()) {
      return of_rule(node.device, table->place_match, table->place_mark);
    }
  }
  return {node.device, "tagged", node.mark};
}

// A node without inputs (the seed of a gradient) runs where it is read.
void Anchors::FindBesideReader(NodeIndex n) {
  const Node& node = graph_.nodes[n];
  if (!node.inputs.empty() || node.phase == Phase::kStep || !HasKernel(node.op)) return;
  for (size_t r = 0; r < graph_.nodes.size(); ++r) {
    if (graph_.nodes[r].phase == Phase::kStep) continue;
    for (const ValueIndex v : graph_.nodes[r].inputs) {
      if (graph_.value(v).producer != n) continue;
      of_node_[n] = of_node_[r];
      why_[n] = "where it is read";
    }
  }
}

// Weights and their optimizer's state lie where the optimizer runs: where the job says, or with the
// first node that reads them. What is not trained is joined on the processor.
Anchor Anchors::OfLasting(const ParameterSpec& p) const {
  const ValueIndex of = p.trained ? p.value : UpdatedWith(p.value);
  if (of == kNone || job_.train.asynchronous()) return {};
  const Device said = SaidOfWeight(of);
  if (said == Device::kCpu || !CanUpdate()) return {};
  if (said == Device::kGpu && options_.tags_hold) return {said, kNone};
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    if (node.phase == Phase::kStep) continue;
    if (std::ranges::find(node.inputs, of) != node.inputs.end()) return of_node_[n];
  }
  return {};
}

// The parameter whose update writes this state; kNone: none does.
ValueIndex Anchors::UpdatedWith(ValueIndex state) const {
  for (const Node& node : graph_.nodes) {
    if (node.op != "update") continue;
    if (std::ranges::find(node.inputs, state) != node.inputs.end()) return node.inputs[0];
  }
  return kNone;
}

// Updates run where their parameter lies, and what prepares a gradient for one there too; norms of
// all gradients where most of a gradient is likely to be.
Anchor Anchors::OfStep(const Node& node) const {
  if (node.op == "update" || node.op == "update_rows") return of_value_[node.inputs[0]];
  if (node.op == "add_l2") return of_value_[node.inputs[1]];
  if (node.op == "clip_by_global_norm" && HasKernel(node.op)) return OfLargestWeights();
  return {};
}

Anchor Anchors::OfLargestWeights() const {
  Anchor largest;
  double most = -1;
  for (const ParameterSpec& p : graph_.parameters) {
    if (!p.trained || p.grad == kNone) continue;
    double elements = 1;  // Parameters have no symbols.
    for (const Dim& dim : graph_.value(p.value).shape) elements *= static_cast<double>(dim.times);
    if (elements <= most) continue;
    most = elements;
    largest = of_value_[p.value];
  }
  return largest;
}

}  // namespace dt::scheduler
