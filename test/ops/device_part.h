// Runs the part of a node that one device computes, in memory.
#pragma once

#include <functional>
#include <vector>

#include "scheduler/parallel/node_cut.h"
#include "test/ops/op_case.h"
#include "test/support/host_tensor.h"

namespace dt::test {

// A node, its sharding rule, and what it computes undivided.
class WholeNode {
 public:
  WholeNode(const Backend::Work& work, Sharding rule);

  // Runs the node on the work's own tensors.
  void Run(TaskPool& pool);
  // The outputs for two random terms of these inputs, added.
  std::vector<HostTensor> SumOfTerms(const std::vector<size_t>& inputs, TaskPool& pool) const;

  const Sharding& rule() const { return rule_; }
  const Node& node() const { return work_.node; }
  const RunInfo& run() const { return work_.run; }
  // Inputs before the run; inputs and outputs after it.
  const std::vector<HostTensor>& before() const { return before_; }
  const std::vector<HostTensor>& inputs() const { return inputs_; }
  const std::vector<HostTensor>& outputs() const { return outputs_; }
  // True if the node wrote to this input in place.
  bool Writes(size_t input) const { return inputs_[input].bytes != before_[input].bytes; }
  int64_t Extent(LoopIndex loop) const;

 private:
  const Backend::Work& work_;
  const Sharding rule_;
  std::vector<HostTensor> before_, inputs_, outputs_;
};

class DevicePart {
 public:
  DevicePart(const WholeNode& whole, const scheduler::NodeCut& cut,
             const scheduler::NodeLayouts& layouts, DeviceIndex device);

  DeviceIndex device() const { return device_; }
  struct Result {
    std::vector<HostTensor> inputs, outputs;
  };
  Result Run(TaskPool& pool) const;

  // Calls f(position in the part, position in the whole) for every element that the device has.
  void ForEachPlace(const ShardTensor& tensor, const Layout& layout, const Shape& whole,
                    const std::function<void(size_t, size_t)>& f) const;
  // The share of the iterations of those loops that the tensor lacks.
  double ShareWithout(const ShardTensor& tensor) const;

 private:
  Range RangeOf(LoopIndex loop) const;
  int64_t EndBefore(int64_t list) const;
  std::vector<int64_t> PositionsOf(const ShardAxis& axis, const Places& places) const;
  void FindOwnRows();
  void MakeUses(HostTensor& ends, HostTensor& order) const;
  HostTensor Slice(size_t input) const;
  Node LocalNode() const;

  const WholeNode& whole_;
  const scheduler::NodeCut& cut_;
  const scheduler::NodeLayouts& layouts_;
  const DeviceIndex device_;
  std::vector<int64_t> own_rows_;  // The rows that the device's positions use, ascending.
  // The uses that the device has, as positions in its part, by own row.
  std::vector<std::vector<uint32_t>> own_uses_;
};

}  // namespace dt::test
