// What decides where each node, weight and state of a graph goes: a device that somebody said, or a
// slice node that it goes with, wherever that goes. Everything that goes with one node is what
// automatic placement moves as a whole:
//   - a gradient without a tag goes with its forward node: it reads the same activations and
//     weights, so that apart from each other they would only copy; and there is half as much to
//     place
//   - weights and their optimizer's state go with the first node that reads them, updates with
//     their weights
//   - a table on the worker and its update go where its rows are taken from it
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/graph/graph_index.h"

namespace dt::scheduler {

struct Anchor {
  Device device = Device::kCpu;  // kCpu or kGpu; kAuto: wherever `root` goes.
  NodeIndex root = kNone;        // A slice node that is free to go anywhere.
};

class Anchors {
 public:
  struct Options {
    bool automatic = false;   // Nodes that nobody said anything of may go to the accelerator.
    bool tags_hold = true;    // Else what is to be on `gpu` is as if nothing was said, …
    std::string unheld = {};  // … for this reason.
    std::span<const std::string> without_kernel = {};  // Operators that cannot run on `gpu`.
  };
  // REQUIRES: the index outlives it; forward nodes stand before their gradients. Errors:
  // NotYet, a tag that means nothing here; Invalid, tags that do not hold without
  // parallel.fallback, or a pattern of parallel.place that matches no slice node.
  static Result<Anchors> Find(const GraphIndex& index, const JobConfig& job,
                              const Options& options);

  const Anchor& of(NodeIndex node) const { return of_node_[node]; }
  // Of a parameter, state or table on the worker.
  const Anchor& of_lasting(ValueIndex value) const { return of_value_[value]; }
  // Of a slice node, a few words; empty for a root.
  const std::string& why(NodeIndex node) const { return why_[node]; }
  // Why a node or the optimizer lost its tag; empty: none did.
  const std::string& fell_back() const { return fell_back_; }

 private:
  struct Said {
    Device device = Device::kAuto;
    std::string by;   // "tagged", 'parallel.place "deep*"'.
    SourceMark mark;  // Of that.
  };
  Anchors(const GraphIndex& index, const JobConfig& job, const Options& options);
  // Where something said that a weight is updated.
  Device SaidOfWeight(ValueIndex weight) const;
  // That it can be.
  Status CheckWeight(ValueIndex weight);
  // The key and its value that put it on `gpu`.
  std::string SayingOfWeight(ValueIndex weight) const;
  bool HasKernel(std::string_view op) const;
  // What keeps one of the nodes from `gpu`, in words; empty: nothing.
  std::string LackingOf(std::span<const NodeIndex> nodes) const;
  // What keeps the weight from being updated on `gpu`; empty: nothing.
  std::string LackingForUpdate(ValueIndex weight) const;
  // The table on the worker from which the node takes rows; nullptr: none.
  const TableUse* TableTakenBy(NodeIndex n) const;
  // What keeps the node, or what goes with it, from `gpu`; empty: nothing.
  std::string Unheld(NodeIndex n) const;
  Status FindSliceNode(NodeIndex n);
  // What a tag or rule says of it, if that holds.
  Result<Device> SaidOf(NodeIndex n);
  // Who says it.
  Said WhoSays(NodeIndex n) const;
  void FindBesideReader(NodeIndex n);
  Anchor OfLasting(const ParameterSpec& p) const;
  ValueIndex UpdatedWith(ValueIndex state) const;
  Anchor OfStep(NodeIndex n) const;
  Anchor OfLargestWeights() const;

  const GraphIndex& index_;
  const Graph& graph_;
  const JobConfig& job_;
  const Options options_;
  std::vector<Anchor> of_node_;
  std::vector<Anchor> of_value_;  // Of parameters, state and tables on the worker.
  std::vector<std::string> why_;  // By node.
  std::string fell_back_;
};

}  // namespace dt::scheduler
