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
  Step step = 0;  // Of the update; bias correction uses step + 1.
  uint64_t first_sample =
      0;  // Position in the epoch of this slice's first sample: with step it keys dropout.
  uint32_t step_samples = 1;  // The divisor of losses.
  float lr_scale = 1.0f;      // Of learning rates (schedule).
  bool training = true;
};

struct KernelContext {
  const Node& node;
  std::span<const TensorView>
      inputs;  // In-place operators (updates) write their inputs, as they say.
  std::span<const TensorView> outputs;
  const RunInfo& run;
  TaskPool& pool;
  std::vector<std::byte>&
      scratch;  // Kept between runs of this node: grows once, then allocates nothing.

  const TensorView& in(size_t i) const { return inputs[i]; }
  const TensorView& out(size_t i) const { return outputs[i]; }
};

using Kernel = void (*)(KernelContext& context);

// nullptr if the operator has none (pull, push and communication are the engine's).
Kernel FindKernel(std::string_view op);

}  // namespace dt
