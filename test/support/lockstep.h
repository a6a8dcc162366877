// Runs the graphs of all devices of a team in one thread, node by node, communication included: the
// judge of what divides a graph.
#pragma once

#include <vector>

#include "scheduler/passes/parallel/parallel_graph.h"
#include "test/support/interpreter.h"

namespace dt::test {

class Lockstep {
 public:
  // `parallel` outlives it.
  explicit Lockstep(const scheduler::ParallelGraph& parallel);

  // Runs the slice nodes on a slice, whose inputs are those of the undivided graph.
  void RunSlice(const SliceData& slice, const Tensors& parameters, const RunInfo& run);

  // The value as all devices hold it together: parts in their places, terms added, rows of devices
  // added to the rows of the slice. Fails the test if copies differ.
  HostTensor Joined(ValueIndex value, const Shape& whole) const;

 private:
  SliceData DataOf(const SliceData& slice, DeviceIndex device);
  void RunNode(NodeIndex n, const RunInfo& run);
  void Communicate(NodeIndex n);
  int64_t Length(DeviceIndex device, ValueIndex value, size_t dim) const;

  const scheduler::ParallelGraph& parallel_;
  std::vector<Graph> graphs_;    // By device.
  std::vector<SliceData> data_;  // By device.
  std::vector<Tensors> values_;  // By device.
  // By device and table: the rows of the slice that the device has.
  std::vector<std::vector<std::vector<int64_t>>> own_rows_;
};

}  // namespace dt::test
