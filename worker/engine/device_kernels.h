// What a device could compute: which operators of this build have a kernel there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/device/cuda_table.h"
#include "common/device/open_accelerator.h"

namespace dt::worker {

// Of those that have one for the processor; the engine's own (communication, copies) need none.
std::vector<std::string> OperatorsWithoutKernel(const CudaTable& table);

// What FindAccelerator finds, with the operators that it has no kernel for. The emulated one has
// the processor's.
Result<std::optional<DeviceInfo>> FindAcceleratorWithKernels(const ClusterConfig& cluster);

}  // namespace dt::worker
