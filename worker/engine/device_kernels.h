// What a device can compute: the operators of this build that have a kernel there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/device/cuda_table.h"
#include "common/device/open_accelerator.h"

namespace dt::worker {

// Operators that have a kernel for the processor but none in `table`. The engine's own operators
// (communication, copies) need none.
std::vector<std::string> OperatorsWithoutKernel(const CudaTable& table);

// The result of FindAccelerator, with the operators for which it has no kernel. The emulated
// accelerator has the processor's kernels.
Result<std::optional<DeviceInfo>> FindAcceleratorWithKernels(const ClusterConfig& cluster);

}  // namespace dt::worker
