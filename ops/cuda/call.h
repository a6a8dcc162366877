// A node of the graph as the plain data that CUDA kernels take.
#pragma once

#include <span>
#include <vector>

#include "common/device/cuda_table.h"
#include "common/graph/graph.h"
#include "ops/kernel.h"

namespace dt {

// Owns what its call points to; both move together. Not thread-safe.
class CudaNode {
 public:
  // `extents` by symbol, 1 first: exact for B, capacities for others. Addresses, run, scratch and
  // stream are the caller's to fill in. Error: Invalid, more symbols or dimensions than a call
  // holds, or f64.
  static Result<CudaNode> Make(const Graph& graph, const Node& node,
                               std::span<const int64_t> extents);

  CudaNode(CudaNode&&) = default;
  CudaNode& operator=(CudaNode&&) = default;

  CudaTensor& input(size_t i) { return inputs_[i]; }
  CudaTensor& output(size_t i) { return outputs_[i]; }
  CudaCall& call() { return call_; }

 private:
  CudaNode() = default;
  Status AddTensors(const Graph& graph, const std::vector<ValueIndex>& values,
                    std::span<const int64_t> extents, std::vector<CudaTensor>* to);
  void AddAttrs();

  Attrs attrs_;  // With the node's name.
  std::vector<CudaTensor> inputs_, outputs_;
  std::vector<CudaAttr> plain_attrs_;
  CudaCall call_;
};

// What the card has to know of a slice: `sizes` by symbol, 1 first.
// REQUIRES: at most kCudaSymbolsMax sizes.
CudaRun CudaRunOf(const RunInfo& run, std::span<const int64_t> sizes);

}  // namespace dt
