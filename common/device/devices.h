// The devices on which this process can compute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/fields.h"
#include "common/base/status.h"

namespace dt {

enum class DeviceKind : uint8_t { kCpu, kCuda, kEmulated };
std::string_view NameOf(DeviceKind kind);

struct DeviceInfo {
  DeviceKind kind = DeviceKind::kCpu;
  int32_t index = 0;  // Index among the devices of its kind.
  std::string name;
  uint64_t memory_bytes = 0;
  // Operators that cannot run on the device.
  std::vector<std::string> without_kernel = {};
  DT_FIELDS(kind, index, name, memory_bytes, without_kernel)
  friend bool operator==(const DeviceInfo&, const DeviceInfo&) = default;
};

// The CPU and its memory, which always exist.
DeviceInfo HostDevice();
// The cards that run this build's code, each tested with a small kernel. Unavailable, with the
// reason and a hint, if there is none. Takes up to a second if a driver is installed.
Result<std::vector<DeviceInfo>> FindCudaDevices();

}  // namespace dt
