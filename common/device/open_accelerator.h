// What cluster.devices means on this machine.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "common/config/run_config.h"
#include "common/device/accelerator.h"

namespace dt {

// The accelerator that a process of this job computes on beside its CPU, without taking any of its
// memory; nothing with `cpu`. With `auto` the emulated one where no card works; it is then opened
// only for nodes that are to be on `gpu`. Unavailable: `cuda`, and no card works. Takes up to a
// second where a driver is.
Result<std::optional<DeviceInfo>> FindAccelerator(const ClusterConfig& cluster);

// Opens it. An emulated one that was not asked for is told of by a warning. Unavailable: there is
// none, with the reason. `hurried`: EmulatedAccelerator::Options.
Result<std::unique_ptr<Accelerator>> OpenAccelerator(const ClusterConfig& cluster,
                                                     std::function<bool()> hurried = {});

}  // namespace dt
