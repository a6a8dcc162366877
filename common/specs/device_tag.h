// The device tag of a node, a table or an optimizer: where it runs or is stored.
#pragma once

#include <string_view>

namespace dt {

// kAuto leaves the choice to the planner; kPs means the servers.
enum class Device { kAuto, kCpu, kGpu, kPs };
inline constexpr std::string_view kDeviceNames = "auto|cpu|gpu|ps";
std::string_view NameOf(Device device);

}  // namespace dt
