#include <algorithm>

#include "common/base/text.h"
#include "scheduler/plan/costs.h"
#include "scheduler/plan/plan.h"

namespace dt::scheduler {
namespace {

class Explainer {
 public:
  Explainer(const Plan& plan, const JobConfig& job)
      : plan_(plan),
        graph_(plan.graph),
        job_(job),
        costs_(graph_, plan.columns, SliceSamples(plan)) {}

  std::string Run() {
    Summary();
    Tables();
    Passes("training", plan_.train);
    Passes("evaluation", plan_.evaluate);
    return text_;
  }

 private:
  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  static int64_t SliceSamples(const Plan& plan) {
    return (int64_t{plan.batch_size} + plan.slices - 1) / plan.slices;
  }

  void Summary() {
    int64_t trained = 0, states = 0;
    for (const ParameterSpec& p : graph_.parameters) {
      (p.trained ? trained : states) +=
          static_cast<int64_t>(costs_.Elements(graph_.value(p.value).shape));
    }
    Line("plan of {}: {} nodes, {} values; batch {} in {} slices of {}", job_.job,
         graph_.nodes.size(), graph_.values.size(), plan_.batch_size, plan_.slices,
         costs_.samples());
    Line("dense parameters: {} trained, {} of optimizer state and running statistics", trained,
         states);
    Memory(Device::kCpu, "cpu");
    Memory(Device::kGpu, "gpu");
  }

  void Memory(Device device, std::string_view name) {
    std::vector<double> slots(plan_.slot_count, 0);
    double unshared = 0, lasting = 0;
    for (size_t v = 0; v < plan_.slot.size(); ++v) {
      const Value& value = graph_.value(static_cast<ValueIndex>(v));
      if (value.device != device) continue;
      const double bytes = costs_.Bytes(static_cast<ValueIndex>(v));
      if (value.kind != ValueKind::kNode && value.kind != ValueKind::kInput) lasting += bytes;
      if (plan_.slot[v] == kNone) continue;
      slots[plan_.slot[v]] = std::max(slots[plan_.slot[v]], bytes);
      unshared += bytes;
    }
    if (device == Device::kGpu && lasting == 0 && unshared == 0) return;
    double memory = 0;
    for (const double bytes : slots) memory += bytes;
    Line("memory on {}: weights and state {}, a slice {} in {} slots (without sharing: {})", name,
         Bytes(lasting), Bytes(memory),
         std::ranges::count_if(slots, [](double b) { return b > 0; }), Bytes(unshared));
  }

  static std::string Bytes(double bytes) { return BytesText(static_cast<uint64_t>(bytes)); }

  void Tables() {
    for (const TableUse& table : graph_.tables) {
      double ids = 0;
      for (const LookupSpec& lookup : graph_.lookups) {
        if (graph_.tables[lookup.table].id == table.id) ids += costs_.Ids(lookup);
      }
      const double bytes = ids * table.dim * sizeof(float);
      Line(
          "table {} on ps, because its keys are open: dim {}, at most {:.0f} rows pulled a slice "
          "({}){}",
          table.name, table.dim, ids, Bytes(bytes),
          table.row_grad == kNone ? ", nothing pushed" : ", as many pushed");
    }
  }

  std::string Why(const Node& node) const {
    if (IsCommunication(node)) return "joins the slices of all workers";
    if (node.op == "copy") return "read there";
    if (node.op == "refresh") return "weights that are updated elsewhere";
    if (node.phase == Phase::kStep) return "where its weights lie";
    const Node& tagged = node.forward == kNone ? node : graph_.nodes[node.forward];
    for (const NodeConfig& user : job_.model.nodes) {
      const bool of_user = tagged.name == user.name || tagged.name.starts_with(user.name + ".");
      if (of_user && user.device != Device::kAuto) return fmt::format("device of {}", user.name);
    }
    for (const PlaceRule& rule : job_.parallel.place) {
      if (MatchesPattern(node.name, rule.match)) return fmt::format("place {}", rule.match);
    }
    return node.forward == kNone ? "auto" : "as its forward node";
  }

  void Passes(std::string_view name, const std::vector<Subgraph>& subgraphs) {
    for (const Subgraph& subgraph : subgraphs) {
      OpCost total;
      std::string lines;
      for (const NodeIndex n : subgraph.nodes) {
        const Node& node = graph_.nodes[n];
        const OpCost cost = costs_.Of(node);
        total.flops += cost.flops;
        total.bytes += cost.bytes;
        const std::string shape =
            node.outputs.empty() ? "" : ShapeText(graph_, graph_.value(node.outputs[0]).shape);
        lines += fmt::format("  {:<32} {:<20} {:<16} {:<4} {}\n", node.name, node.op, shape,
                             node.device == Device::kGpu ? "gpu" : "cpu", Why(node));
      }
      Line("{} subgraph {} on {}: each {}, {:.3g} flops, {} moved", name, subgraph.name,
           NameOf(subgraph.stream), subgraph.phase == Phase::kSlice ? "slice" : "step", total.flops,
           Bytes(total.bytes));
      text_ += lines;
    }
  }

  const Plan& plan_;
  const Graph& graph_;
  const JobConfig& job_;
  const SliceCosts costs_;
  std::string text_;
};

}  // namespace

std::string ExplainPlan(const Plan& plan, const JobConfig& job) {
  return Explainer(plan, job).Run();
}

}  // namespace dt::scheduler
