// Runs the nodes of Stream::kGpu on a CUDA card, by the kernels of its library. The work of a
// subgraph is recorded once for each B as a CUDA graph, and launched as one from then on. Kernels
// read sizes other than B, and all else that changes from step to step, from the CudaRun in the
// card's memory.
#pragma once

#include "common/device/accelerator_cuda.h"
#include "worker/engine/node_runner.h"

namespace dt::worker {

// Errors: NotYet, if an operator has no CUDA kernel; Invalid, if a node does not fit into a call;
// Unavailable, if there is no queue or no memory. `context` outlives the runner.
Result<std::unique_ptr<NodeRunner>> MakeCudaRunner(const RunnerContext& context,
                                                   CudaAccelerator& card);

}  // namespace dt::worker
