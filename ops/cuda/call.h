// Converts a node of the graph to the plain data that CUDA kernels take.
#pragma once

#include <span>
#include <vector>

#include "common/device/cuda_table.h"
#include "common/graph/graph.h"
#include "ops/kernel.h"

namespace dt {

// Owns the memory that its call points to, also after a move. Not thread-safe.
class CudaNode {
 public:
  // `extents`: sizes by symbol, the first is 1; exact for B, capacities for others. The caller
  // fills in addresses, run, scratch and stream. Errors: Invalid, if the node has f64, or more
  // symbols or dimensions than a call can hold.
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

  Attrs attrs_;  // Includes the node's name.
  std::vector<CudaTensor> inputs_, outputs_;
  std::vector<CudaAttr> plain_attrs_;
  CudaCall call_;
};

// Values of a slice that kernels read on the card. `sizes`: by symbol, the first is 1. REQUIRES: at
// most kCudaSymbolsMax sizes.
CudaRun CudaRunOf(const RunInfo& run, std::span<const int64_t> sizes);

}  // namespace dt
