#include "scheduler/passes/placement/graph_problem.h"

#include <algorithm>
#include <cmath>

#include "common/plan/plan.h"
#include "scheduler/passes/lowering/lowering.h"

namespace dt::scheduler {
namespace {

// Limit for seconds and bytes, so that sums of them still fit into integers.
constexpr double kMost = 1e15;

double Amount(double x) { return std::isnan(x) ? 0 : std::clamp(x, 0.0, kMost); }

class Builder {
 public:
  explicit Builder(const ProblemOf& of)
      : of_(of), graph_(of.index.graph()), item_of_value_(graph_.values.size(), kInputs) {}

  GraphProblem Build() {
    SetRates();
    AddItem("inputs", {});
    for (const ParameterSpec& p : graph_.parameters) AddLasting(p.value);
    for (const TableUse& table : graph_.tables) {
      if (table.store == kNone) continue;
      AddLasting(table.store);
      made_.problem.items.back().memory.fill(Amount(of_.costs.Bytes(table.store)));
    }
    made_.item_of.resize(graph_.nodes.size());
    for (const NodeIndex n : NodesInStreamOrder(of_.index)) AddNode(n);
    AddResults();
    return std::move(made_);
  }

 private:
  void SetRates() {
    PlacementProblem& problem = made_.problem;
    const DeviceProfile& profile = of_.profile;
    problem.away = {PlacementProblem::Link{profile.to_accelerator.latency_seconds,
                                           profile.to_accelerator.bytes},
                    PlacementProblem::Link{profile.from_accelerator.latency_seconds,
                                           profile.from_accelerator.bytes}};
    problem.launch = {profile.cpu.launch_seconds, profile.accelerator.launch_seconds};
  }

  PlacementProblem::Item& AddItem(std::string name, const PlacementConstraint& constraint) {
    PlacementProblem::Item& item = made_.problem.items.emplace_back();
    item.name = std::move(name);
    if (constraint.device == Device::kAuto) {
      item.group = constraint.root;
    } else {
      item.fixed = constraint.device == Device::kGpu ? kOnAccelerator : kOnCpu;
    }
    return item;
  }
  uint32_t last_item() const { return static_cast<uint32_t>(made_.problem.items.size() - 1); }

  // Adds an item for a parameter, state or table. Parameters and state count as values, from this
  // item to their last use: at the item's place, and as a replica at the other place if an item
  // there reads them.
  void AddLasting(ValueIndex v) {
    AddItem(graph_.value(v).name, of_.constraints.of_lasting(v));
    item_of_value_[v] = last_item();
  }

  void AddNode(NodeIndex n) {
    const Node& node = graph_.nodes[n];
    PlacementProblem::Item& item = AddItem(node.name, of_.constraints.of(n));
    if (!of_.index.Is(n, OpKind::kCommunication)) item.seconds = SecondsOf(node);
    made_.item_of[n] = last_item();
    for (const ValueIndex v : node.inputs) AddEdge(v);
    for (const ValueIndex v : node.outputs) item_of_value_[v] = last_item();
  }

  // The arithmetic of a product; other operators compute in fp32.
  static Arithmetic ArithmeticOf(const Node& node) {
    const std::string math = TextAttr(node.attrs, "math", "fp32");
    return math == "bf16"   ? Arithmetic::kBf16
           : math == "tf32" ? Arithmetic::kTf32
                            : Arithmetic::kFp32;
  }

  PerPlace<double> SecondsOf(const Node& node) const {
    const OpCost cost = of_.costs.Of(node);
    const double flops = Amount(cost.flops), bytes = Amount(cost.bytes);
    const double share = node.phase != Phase::kSlice ? of_.step_share : 1;
    const Arithmetic math = ArithmeticOf(node);
    const bool runs_there =
        std::ranges::find(of_.without_kernel, node.op) == of_.without_kernel.end();
    return {Amount(share * of_.profile.cpu.SecondsOf(flops, bytes, math)),
            runs_there ? Amount(share * of_.profile.accelerator.SecondsOf(flops, bytes, math))
                       : kCannotRun};
  }

  // An edge to the last item. A table needs none, since it is always read on its own device.
  void AddEdge(ValueIndex v) {
    if (graph_.value(v).kind == ValueKind::kTable) return;
    made_.problem.edges.push_back({.from = item_of_value_[v],
                                   .to = last_item(),
                                   .bytes = Amount(of_.costs.Bytes(v)),
                                   .value = v});
  }

  void AddResults() {
    AddItem("results", {});
    std::vector<ValueIndex> read;
    for (const TableUse& table : graph_.tables) read.push_back(table.row_grad);
    for (const ParameterSpec& p : graph_.parameters) read.push_back(p.pushed);
    for (const LossSpec& loss : graph_.losses) read.insert(read.end(), {loss.output, loss.loss});
    for (const ValueIndex v : read) {
      if (v != kNone) AddEdge(v);
    }
  }

  static constexpr uint32_t kInputs = 0;

  const ProblemOf& of_;
  const Graph& graph_;
  GraphProblem made_;
  std::vector<uint32_t> item_of_value_;
};

}  // namespace

GraphProblem MakeProblem(const ProblemOf& of) { return Builder(of).Build(); }

}  // namespace dt::scheduler
