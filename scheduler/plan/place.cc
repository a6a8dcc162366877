// Which device each node runs on, and where each value lies.
#include <algorithm>

#include "common/base/text.h"
#include "scheduler/plan/passes.h"

namespace dt::scheduler {
namespace {

class Placer {
 public:
  Placer(Graph graph, const PlanRequest& request)
      : graph_(std::move(graph)), request_(request), home_(graph_.values.size(), Device::kAuto) {}

  Result<Graph> Run() {
    DT_TRY_STATUS(CheckOptimizer());
    for (Node& node : graph_.nodes) DT_TRY_STATUS(OneSliceNode(node));
    for (size_t n = graph_.nodes.size(); n-- > 0;) BesideReader(static_cast<NodeIndex>(n));
    for (const ParameterSpec& p : graph_.parameters) home_[p.value] = HomeOf(p);
    for (Node& node : graph_.nodes) {
      if (node.phase == Phase::kStep) node.device = DeviceOfStep(node);
      for (const ValueIndex v : node.outputs) graph_.values[v].device = node.device;
    }
    for (const ParameterSpec& p : graph_.parameters) {
      graph_.values[p.value].device = home_[p.value];
    }
    return std::move(graph_);
  }

 private:
  bool CannotMeet(Device device) const {
    return device == Device::kGpu && !request_.has_accelerator;
  }
  static std::string_view Remedy() {
    return "set cluster.devices to auto, cuda or emulated, or parallel.fallback to cpu";
  }

  Status CheckOptimizer() {
    optimizer_ = request_.job.optimizer.device;
    if (!CannotMeet(optimizer_)) return OkStatus();
    if (!request_.job.parallel.fall_back_to_cpu) {
      return WithHint(Invalid("optimizer.device: gpu, and cluster.devices is cpu"), Remedy());
    }
    optimizer_ = Device::kCpu;
    return OkStatus();
  }

  Status OneSliceNode(Node& node) const {
    if (node.device == Device::kPs) {
      return AboutNode(NotYet("device: ps is for tables; on a node it is not available yet"),
                       node.name, node.mark);
    }
    if (node.device == Device::kAuto) node.device = ByRule(node);
    if (!CannotMeet(node.device)) return OkStatus();
    if (!request_.job.parallel.fall_back_to_cpu) {
      return AboutNode(WithHint(Invalid("device: gpu, and cluster.devices is cpu"), Remedy()),
                       node.name, node.mark);
    }
    node.device = Device::kCpu;
    return OkStatus();
  }

  // A gradient without a tag follows its forward node, which stands before it.
  Device ByRule(const Node& node) const {
    for (const PlaceRule& rule : request_.job.parallel.place) {
      if (MatchesPattern(node.name, rule.match)) return rule.device;
    }
    return node.forward == kNone ? Device::kCpu : graph_.nodes[node.forward].device;
  }

  // A node without inputs (the seed of a gradient) runs where it is read.
  void BesideReader(NodeIndex index) {
    Node& node = graph_.nodes[index];
    if (!node.inputs.empty() || node.phase == Phase::kStep) return;
    for (const Node& reader : graph_.nodes) {
      if (reader.phase == Phase::kStep) continue;
      for (const ValueIndex v : reader.inputs) {
        if (graph_.value(v).producer == index) node.device = reader.device;
      }
    }
  }

  // Weights and their optimizer's state lie where the optimizer runs: where the job says, or where
  // the first node that reads them runs. What is not trained is joined on the processor.
  Device HomeOf(const ParameterSpec& p) const {
    const ValueIndex of = p.trained ? p.value : UpdatedWith(p.value);
    if (of == kNone || request_.job.train.asynchronous()) return Device::kCpu;
    if (optimizer_ != Device::kAuto) return optimizer_;
    for (const Node& node : graph_.nodes) {
      if (node.phase == Phase::kStep) continue;
      if (std::ranges::find(node.inputs, of) != node.inputs.end()) return node.device;
    }
    return Device::kCpu;
  }

  // The parameter whose update writes this state; kNone: none does.
  ValueIndex UpdatedWith(ValueIndex state) const {
    for (const Node& node : graph_.nodes) {
      if (node.op != "update") continue;
      if (std::ranges::find(node.inputs, state) != node.inputs.end()) return node.inputs[0];
    }
    return kNone;
  }

  // Updates run where their parameter lies, and what prepares a gradient for one there too; norms
  // of all gradients where all of them are.
  Device DeviceOfStep(const Node& node) const {
    if (node.op == "update") return home_[node.inputs[0]];
    if (node.op == "add_l2") return home_[node.inputs[1]];
    if (node.op != "clip_by_global_norm") return Device::kCpu;
    const bool all_gpu = std::ranges::all_of(graph_.parameters, [this](const ParameterSpec& p) {
      return !p.trained || p.grad == kNone || home_[p.value] == Device::kGpu;
    });
    return all_gpu ? Device::kGpu : Device::kCpu;
  }

  Graph graph_;
  const PlanRequest& request_;
  Device optimizer_ = Device::kAuto;
  std::vector<Device> home_;  // By value, of parameters and state.
};

}  // namespace

Result<Graph> Place(Graph graph, const PlanRequest& request) {
  return Placer(std::move(graph), request).Run();
}

}  // namespace dt::scheduler
