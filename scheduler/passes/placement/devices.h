// Properties of the workers' devices that a plan may rely on.
#pragma once

#include <optional>
#include <span>

#include "common/config/job_config.h"
#include "common/device/devices.h"
#include "common/profile/device_profile.h"

namespace dt::scheduler {

// An accelerator that stands for those of all workers: the least memory of any, emulated if one is,
// without the kernels that any of them lacks. `accelerators`: one for each worker that has one.
// Empty if some workers have none.
std::optional<DeviceInfo> CommonAccelerator(std::span<const DeviceInfo> accelerators,
                                            uint32_t workers);

// Whether nodes may be placed on it automatically. An emulated accelerator must be asked for by
// name, because it is no faster than the CPU.
bool MayBeChosen(const std::optional<DeviceInfo>& accelerator, const JobConfig& job);

// Rates of the workers' devices: those of parallel.profile, or else of cluster.emulated, or else
// defaults for a CPU with `threads` threads. Errors: Invalid, if the file has problems. Warns if
// the file was measured on a card and `accelerator` is emulated, or the reverse.
Result<DeviceProfile> ProfileOf(const JobConfig& job, const std::optional<DeviceInfo>& accelerator,
                                uint32_t threads);

}  // namespace dt::scheduler
