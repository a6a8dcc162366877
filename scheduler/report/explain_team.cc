#include "scheduler/report/explain_team.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/text.h"
#include "common/graph/graph_index.h"
#include "common/layout/sample_part.h"
#include "ops/op_spec.h"

namespace dt::scheduler {
namespace {

class Reporter {
 public:
  explicit Reporter(const Plan& plan)
      : plan_(plan), graph_(plan.graph), index_(plan.graph, TraitsOf) {}

  TeamReport Make() {
    for (const ParameterSpec& p : graph_.parameters) {
      if (!p.trained) continue;
      const double held = BytesOf(p.value) / sizeof(float);
      report_.held += held;
      double whole = 1;
      for (const int64_t dim : p.whole) whole *= static_cast<double>(dim);
      report_.whole += p.whole.empty() ? held : whole;
    }
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      const Phase phase = graph_.nodes[n].phase;
      if (phase == Phase::kJoin) AddExchange(n);
      if (index_.Is(n, OpKind::kCommunication) && phase == Phase::kSlice) AddCall(n);
    }
    return std::move(report_);
  }

 private:
  double BytesOf(ValueIndex v) const {
    const int64_t samples = (int64_t{plan_.batch_size} + plan_.slices - 1) / plan_.slices;
    const Value& value = graph_.value(v);
    double bytes = static_cast<double>(SizeOf(value.dtype));
    for (const Dim& dim : value.shape) {
      bytes *= static_cast<double>(dim.times);
      if (dim.symbol == kConstant) continue;
      const SamplePart part = SamplePartOf(graph_.symbols[dim.symbol]);
      bytes *= static_cast<double>(SamplesOf(part, samples, plan_.devices, plan_.position).size());
    }
    return bytes;
  }

  const std::vector<uint32_t>& MembersOf(const Node& node, std::string_view attr) const {
    return graph_.groups[static_cast<size_t>(IntAttr(node.attrs, attr, 0))].members;
  }

  void AddCall(NodeIndex n) {
    const Node& node = graph_.nodes[n];
    if (node.op == "take_part") return;
    TeamCall call{.node = node.name, .op = node.op, .of = graph_.value(node.inputs[0]).name};
    call.group = MembersOf(node, "group");
    const double members = static_cast<double>(call.group.size());
    const double in = BytesOf(node.inputs[0]), out = BytesOf(node.outputs[0]);
    call.bytes = node.op == "all_gather"   ? out - in
                 : node.op == "all_reduce" ? 2 * in * (members - 1) / members
                                           : in * (members - 1) / members;
    std::vector<std::string> readers;
    for (const NodeIndex reader : index_.readers(node.outputs[0])) {
      readers.push_back(graph_.nodes[reader].name);
    }
    call.read_by = JoinText(readers, ", ");
    report_.calls.push_back(std::move(call));
  }

  void AddExchange(NodeIndex n) {
    const Node& node = graph_.nodes[n];
    const double members = static_cast<double>(MembersOf(node, "terms").size());
    if (node.op == "sum_slices") {
      report_.exchanged += 2 * BytesOf(node.inputs[0]) * (members - 1) / members;
    }
  }

  const Plan& plan_;
  const Graph& graph_;
  const GraphIndex index_;
  TeamReport report_;
};

// All members of a few; of many at equal distances the first two and the last one.
std::string GroupText(const std::vector<uint32_t>& group) {
  bool even = group.size() > 8;
  for (size_t i = 2; even && i < group.size(); ++i) {
    even = group[i] - group[i - 1] == group[1] - group[0];
  }
  if (even) return fmt::format("{}, {}, … {}", group[0], group[1], group.back());
  return fmt::format("{}", fmt::join(group, ", "));
}

}  // namespace

TeamReport ReportOfTeam(const Plan& plan) { return Reporter(plan).Make(); }

std::string ExplainTeam(const Plan& plan) {
  if (plan.devices == 1) return "";
  const TeamReport report = ReportOfTeam(plan);
  double received = 0;
  for (const TeamCall& call : report.calls) received += call.bytes;
  const auto bytes = [](double n) { return BytesText(static_cast<uint64_t>(n)); };
  std::string text =
      fmt::format("team: this is worker {} of {}; it holds {} of {} trained parameters\n",
                  plan.position, plan.devices, report.held, report.whole);
  text += fmt::format(
      "  a slice takes {} communications, in which it receives {}; the sums of a step, {} from its "
      "own team\n",
      report.calls.size(), bytes(received), bytes(report.exchanged));
  for (const TeamCall& call : report.calls) {
    text += fmt::format("  {} of {} over [{}]: {}{}\n", call.op, call.of, GroupText(call.group),
                        bytes(call.bytes), call.read_by.empty() ? "" : ", for " + call.read_by);
  }
  return text;
}

}  // namespace dt::scheduler
