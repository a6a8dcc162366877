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
  std::string uuid = {};       // Differs between any two cards; empty for other devices.
  std::string why_alone = {};  // Why NCCL cannot connect it with others; empty if it can.
  DT_FIELDS(kind, index, name, memory_bytes, without_kernel, uuid, why_alone)
  friend bool operator==(const DeviceInfo&, const DeviceInfo&) = default;
};

// The CPU and its memory, which always exist.
DeviceInfo HostDevice();
struct CudaDevice;
struct CudaTable;
// The card's number that no other has, in hex digits.
std::string UuidText(const CudaDevice& card);
// DeviceInfo::why_alone of cards of this library.
std::string WhyAlone(const CudaTable& table);
// The cards that run this build's code, each tested with a small kernel. Unavailable, with the
// reason and a hint, if there is none. Takes up to a second if a driver is installed.
Result<std::vector<DeviceInfo>> FindCudaDevices();

}  // namespace dt
