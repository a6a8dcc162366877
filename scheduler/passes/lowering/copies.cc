// Inserts copies of values that a node reads on the other device: one for each value and device.
// Parameters and state get a replica there instead, which is written again after each update.
#include <map>

#include "common/graph/graph_index.h"
#include "ops/op_spec.h"
#include "scheduler/composites/infer_node.h"
#include "scheduler/passes/lowering/lowering.h"

namespace dt::scheduler {
namespace {

std::string_view Suffix(Device device) { return device == Device::kGpu ? "@gpu" : "@cpu"; }

class Copier {
 public:
  explicit Copier(Graph graph) : old_(std::move(graph)), index_(old_, TraitsOf), graph_(old_) {
    graph_.nodes.clear();
  }

  Result<Graph> Run() {
    std::vector<NodeIndex> moved(old_.nodes.size());
    for (size_t n = 0; n < old_.nodes.size(); ++n) {
      Node node = old_.nodes[n];
      for (ValueIndex& input : node.inputs) {
        DT_TRY(input, On(input, node.device));
      }
      if (node.forward != kNone) node.forward = moved[node.forward];
      moved[n] = static_cast<NodeIndex>(graph_.nodes.size());
      for (const ValueIndex v : node.outputs) graph_.values[v].producer = moved[n];
      graph_.nodes.push_back(std::move(node));
    }
    for (const ReplicaSpec& replica : graph_.replicas) DT_TRY_STATUS(Refresh(replica));
    return WithHostEnds();
  }

 private:
  // The value, or its copy, on `device`.
  Result<ValueIndex> On(ValueIndex v, Device device) {
    if (graph_.value(v).device == device) return v;
    const auto known = there_.find(v);
    if (known != there_.end()) return known->second;
    const bool lasting =
        graph_.value(v).kind == ValueKind::kParameter || graph_.value(v).kind == ValueKind::kState;
    DT_TRY(const ValueIndex copy, lasting ? Replica(v, device) : Copy(v, device));
    there_[v] = copy;
    return copy;
  }

  Result<ValueIndex> OnHost(ValueIndex v) { return v == kNone ? v : On(v, Device::kCpu); }

  Result<ValueIndex> Replica(ValueIndex of, Device device) {
    Value value = graph_.value(of);
    value.name += Suffix(device);
    value.kind = ValueKind::kReplica;
    value.device = device;
    const ValueIndex replica = graph_.AddValue(std::move(value));
    graph_.replicas.push_back({replica, of});
    return replica;
  }

  Result<ValueIndex> Copy(ValueIndex of, Device device) {
    const NodeIndex producer = graph_.value(of).producer;
    Node node;
    node.name = graph_.value(of).name + std::string(Suffix(device));
    node.op = "copy";
    node.inputs = {of};
    node.device = device;
    const bool of_slice = producer == kNone || graph_.nodes[producer].phase == Phase::kSlice;
    if (!of_slice) node.phase = Phase::kStep;
    const NodeIndex index = graph_.AddNode(std::move(node), 1);
    DT_TRY_STATUS(InferNode(graph_, index));
    const ValueIndex copy = graph_.nodes[index].outputs[0];
    graph_.values[copy].device = device;
    return copy;
  }

  // Adds a node that refreshes the replica, if any node writes the original.
  Status Refresh(const ReplicaSpec& replica) {
    if (index_.writers(replica.of).empty()) return OkStatus();
    Node node;
    node.name = "refresh." + graph_.value(replica.value).name;
    node.op = "refresh";
    node.inputs = {replica.of, replica.value};
    node.device = graph_.value(replica.value).device;
    node.phase = Phase::kStep;
    return InferNode(graph_, graph_.AddNode(std::move(node), 0));
  }

  // Values that are pushed or reported are read on the host.
  Result<Graph> WithHostEnds() {
    for (TableUse& table : graph_.tables) {
      DT_TRY(table.row_grad, OnHost(table.row_grad));
    }
    for (ParameterSpec& parameter : graph_.parameters) {
      DT_TRY(parameter.pushed, OnHost(parameter.pushed));
    }
    for (LossSpec& loss : graph_.losses) {
      DT_TRY(loss.output, OnHost(loss.output));
      DT_TRY(loss.loss, OnHost(loss.loss));
    }
    return std::move(graph_);
  }

  const Graph old_;
  const GraphIndex index_;
  Graph graph_;
  std::map<ValueIndex, ValueIndex> there_;  // Maps a value to its copy on the other device.
};

}  // namespace

Result<Graph> InsertCopies(Graph graph, const PlanRequest&) {
  return Copier(std::move(graph)).Run();
}

}  // namespace dt::scheduler
