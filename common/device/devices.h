// Which devices this process could compute on.
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
  int32_t index = 0;  // Among those of its kind.
  std::string name;
  uint64_t memory_bytes = 0;
  std::vector<std::string> without_kernel = {};  // Operators that cannot run there.
  DT_FIELDS(kind, index, name, memory_bytes, without_kernel)
  friend bool operator==(const DeviceInfo&, const DeviceInfo&) = default;
};

// The processor and its memory; always there.
DeviceInfo HostDevice();
// The cards that run this build's code, each tried with a small kernel. Unavailable, with the
// reason and what to do, if there is none. Takes up to a second where a driver is.
Result<std::vector<DeviceInfo>> FindCudaDevices();

}  // namespace dt
