// Constraints on the placement of each node, weight and state of a graph: the job names a device,
// or the value goes together with a slice node. Automatic placement moves everything that goes with
// one node as a whole:
//   - A gradient without a tag goes with its forward node. Both read the same activations and
//     weights, so on different devices they would only copy; and there is half as much to place.
//   - Weights and their optimizer's state go with the first node that reads the weights, and
//     updates go with their weights.
//   - A table on the worker and its update go where rows are taken from the table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/graph/graph_index.h"

namespace dt::scheduler {

struct PlacementConstraint {
  Device device = Device::kCpu;  // kCpu or kGpu; kAuto: the device of `root`.
  NodeIndex root = kNone;        // A slice node that may go to either device.
};

class PlacementConstraints {
 public:
  struct Options {
    bool automatic = false;   // Nodes without a tag or rule may go to the accelerator.
    bool tags_hold = true;    // If false, every `gpu` in the job is treated as `auto`.
    std::string unheld = {};  // Why tags do not hold.
    std::span<const std::string> without_kernel = {};  // Operators that cannot run on `gpu`.
    bool cards_communicate = false;                    // Collectives of a slice may be on `gpu`.
  };
  // REQUIRES: the index outlives the result; forward nodes come before their gradients. Errors:
  // NotYet, for a tag that has no meaning here; Invalid, for tags that do not hold without
  // parallel.fallback, or a pattern of parallel.place that matches no slice node.
  static Result<PlacementConstraints> Find(const GraphIndex& index, const JobConfig& job,
                                           const Options& options);

  const PlacementConstraint& of(NodeIndex node) const { return of_node_[node]; }
  // The constraint of a parameter, state or table on the worker.
  const PlacementConstraint& of_lasting(ValueIndex value) const { return of_value_[value]; }
  // A few words why a slice node has its constraint; empty for a root.
  const std::string& why(NodeIndex node) const { return why_[node]; }
  // Why a node or the optimizer lost its tag; empty if none did.
  const std::string& fell_back() const { return fell_back_; }

 private:
  struct Said {
    Device device = Device::kAuto;
    std::string by;   // "tagged" or 'parallel.place "deep*"'.
    SourceMark mark;  // The line in the job file.
  };
  PlacementConstraints(const GraphIndex& index, const JobConfig& job, const Options& options);
  // The device on which the job asks to update the weight.
  Device SaidOfWeight(ValueIndex weight) const;
  // Errors: Invalid, if the job asks to update the weight on `gpu` and that is impossible.
  Status CheckWeight(ValueIndex weight);
  // The key and value that put the weight on `gpu`, for error texts.
  std::string SayingOfWeight(ValueIndex weight) const;
  bool HasKernel(std::string_view op) const;
  // Why one of the nodes cannot run on `gpu`; empty if all can.
  std::string LackingOf(std::span<const NodeIndex> nodes) const;
  // Why the weight cannot be updated on `gpu`; empty if it can.
  std::string LackingForUpdate(ValueIndex weight) const;
  // The table on the worker that the node takes rows from; nullptr if none.
  const TableUse* TableTakenBy(NodeIndex n) const;
  // Why the node, or a node that goes with it, cannot run on `gpu`; empty if all can.
  std::string Unheld(NodeIndex n) const;
  Status FindSliceNode(NodeIndex n);
  // The device that a tag or rule names for the node; kAuto if none does or it does not hold.
  Result<Device> SaidOf(NodeIndex n);
  // The tag or rule that names a device for the node.
  Said WhoSays(NodeIndex n) const;
  void FindBesideReader(NodeIndex n);
  PlacementConstraint OfLasting(const ParameterSpec& p) const;
  ValueIndex UpdatedWith(ValueIndex state) const;
  PlacementConstraint OfStep(NodeIndex n) const;
  PlacementConstraint OfLargestWeights() const;

  const GraphIndex& index_;
  const Graph& graph_;
  const JobConfig& job_;
  const Options options_;
  std::vector<PlacementConstraint> of_node_;
  std::vector<PlacementConstraint> of_value_;  // Parameters, state, tables on the worker.
  std::vector<std::string> why_;               // Indexed by node.
  std::string fell_back_;
};

}  // namespace dt::scheduler
