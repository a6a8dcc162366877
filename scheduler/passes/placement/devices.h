// What a plan may assume of the workers' devices.
#pragma once

#include <optional>
#include <span>

#include "common/config/job_config.h"
#include "common/device/devices.h"
#include "common/profile/device_profile.h"

namespace dt::scheduler {

// What all `workers` can be given work for: the accelerator with the least memory, called emulated
// if one of them is, without the kernels that any of them lacks. `accelerators`: of the workers
// that have one. Nothing if some have none.
std::optional<DeviceInfo> CommonAccelerator(std::span<const DeviceInfo> accelerators,
                                            uint32_t workers);

// Whether nodes may be put there that nobody asked to be. An emulated one only if the job asks for
// it by name: it is no faster than the processor.
bool MayBeChosen(const std::optional<DeviceInfo>& accelerator, const JobConfig& job);

// Rates of the workers' devices: those of parallel.profile, then those of cluster.emulated, then
// shipped defaults for a processor of so many threads. Error: Invalid, the file has problems. Warns
// of a file that was measured on a card if `accelerator` is emulated, and of the reverse.
Result<DeviceProfile> ProfileOf(const JobConfig& job, const std::optional<DeviceInfo>& accelerator,
                                uint32_t threads);

}  // namespace dt::scheduler
