// Finds and opens the accelerator that cluster.devices selects on this machine.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "common/config/run_config.h"
#include "common/device/accelerator.h"

namespace dt {

// The accelerator that a process of this job can use besides its CPU; takes none of its memory.
// Nothing with `cpu`. With `auto`, the emulated one if no card works; it is then opened only if
// nodes are placed on `gpu`. Unavailable: `cuda`, but no card works. Takes up to a second if a
// driver is installed.
Result<std::optional<DeviceInfo>> FindAccelerator(const ClusterConfig& cluster);

// Opens the accelerator. If `auto` falls back to the emulated one, that is logged. Unavailable,
// with the reason: there is none. `skip_delays`: see EmulatedAccelerator::Options.
Result<std::unique_ptr<Accelerator>> OpenAccelerator(const ClusterConfig& cluster,
                                                     std::function<bool()> skip_delays = {});

}  // namespace dt
