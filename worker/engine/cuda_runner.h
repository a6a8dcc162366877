// The nodes of Stream::kGpu on a CUDA card, by the kernels of its library. What a subgraph gives
// to the card is recorded once for each B as a CUDA graph, and launched as one from then on: sizes
// other than B, and all else that changes from step to step, the kernels read from the CudaRun in
// the card's memory.
#pragma once

#include "common/device/accelerator_cuda.h"
#include "worker/engine/node_runner.h"

namespace dt::worker {

// Errors: NotYet, an operator without a CUDA kernel; Invalid, a node that no call can hold;
// Unavailable, no queue or no memory. `context` outlives it.
Result<std::unique_ptr<NodeRunner>> MakeCudaRunner(const RunnerContext& context,
                                                   CudaAccelerator& card);

}  // namespace dt::worker
