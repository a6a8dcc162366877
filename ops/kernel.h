// The CPU kernels. A kernel reads its inputs, writes every element of its outputs, and keeps no
// state. The same inputs give the same bits with any number of threads.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "common/device/tensor.h"
#include "common/graph/graph.h"
#include "common/runtime/task_pool.h"

namespace dt {

struct RunInfo {
  uint64_t seed = 0;
  Step step = 0;
  Step steps_before = 0;  // See StartMessage: updates count them, too.
  // Position in the epoch of the node's first sample; dropout's random stream depends on it.
  uint64_t first_sample = 0;
  // Position in the slice of the node's first sample. In a team, nodes may have a part of them.
  uint64_t first_in_slice = 0;
  uint32_t step_samples = 1;  // The divisor of losses.
  float lr_scale = 1.0f;      // The schedule's factor on learning rates.
  bool training = true;

  // The step of an update; bias correction uses this + 1.
  Step update_step() const { return steps_before + step; }
};

struct KernelContext {
  const Node& node;
  // In-place operators, such as updates, write to their inputs; their specifications say so.
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  const RunInfo& run;
  TaskPool& pool;
  // Memory for the kernel's own use while it runs; the kernel makes it larger if need be. Kept for
  // the next node, so that it is allocated only once.
  std::vector<std::byte>& scratch;

  const TensorView& in(size_t i) const { return inputs[i]; }
  const TensorView& out(size_t i) const { return outputs[i]; }
};

using Kernel = void (*)(KernelContext& context);

// nullptr if the operator has no kernel (the engine runs pull, push and communication itself).
Kernel FindKernel(std::string_view op);

}  // namespace dt
