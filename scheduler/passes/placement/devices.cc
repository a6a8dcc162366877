#include "scheduler/passes/placement/devices.h"

#include <algorithm>
#include <set>

#include "common/base/log.h"

namespace dt::scheduler {
namespace {

constexpr std::string_view kAsEmulated = "as cluster.emulated says";

// Defaults of the emulated accelerator, overridden by cluster.emulated.
DeviceProfile EmulatedProfile(const EmulatedConfig& emulated, uint32_t threads) {
  DeviceProfile profile = DefaultEmulatedProfile(threads);
  if (emulated.flops > 0) {
    profile.accelerator.flops.fill(double{emulated.flops});
    profile.accelerator.source = kAsEmulated;
  }
  if (emulated.memory_bandwidth > 0) {
    profile.accelerator.memory_bytes = static_cast<double>(emulated.memory_bandwidth);
    profile.accelerator.source = kAsEmulated;
  }
  if (emulated.link_bandwidth > 0) {
    for (CopyRates* const link : {&profile.to_accelerator, &profile.from_accelerator}) {
      link->bytes = static_cast<double>(emulated.link_bandwidth);
      link->source = kAsEmulated;
    }
  }
  return profile;
}

// Warns if a profile of a card is used for an emulated accelerator, or the reverse.
void WarnOfOtherDevice(const std::string& file, const ComputeRates& measured,
                       const DeviceInfo& accelerator) {
  const bool emulated = accelerator.kind == DeviceKind::kEmulated;
  if ((measured.name == kEmulatedName) == emulated) return;
  LogWarn("plan.profile_of_another_device",
          {{"why", fmt::format("parallel.profile: the accelerator of {} is {} ({}), and the "
                               "workers have {}; what is placed and predicted is for the former",
                               file, measured.name, measured.source, accelerator.name)},
           {"hint", "measure on a worker's machine: dovetail bench devices --out FILE"}});
}

// Why NCCL cannot connect all of them.
std::string WhyAlone(std::span<const DeviceInfo> accelerators) {
  std::set<std::string_view> uuids;
  for (const DeviceInfo& accelerator : accelerators) {
    if (accelerator.kind != DeviceKind::kCuda) return "not every worker has a card";
    if (!accelerator.why_alone.empty()) return accelerator.why_alone;
    if (!uuids.insert(accelerator.uuid).second) return "two workers share a card";
  }
  return "";
}

}  // namespace

std::optional<DeviceInfo> CommonAccelerator(std::span<const DeviceInfo> accelerators,
                                            uint32_t workers) {
  if (accelerators.empty() || accelerators.size() < workers) return std::nullopt;
  DeviceInfo common = *std::ranges::min_element(accelerators, {}, &DeviceInfo::memory_bytes);
  const bool emulated = std::ranges::any_of(
      accelerators, [](const DeviceInfo& a) { return a.kind == DeviceKind::kEmulated; });
  if (emulated) common.kind = DeviceKind::kEmulated;
  std::set<std::string> without;
  for (const DeviceInfo& accelerator : accelerators) {
    without.insert(accelerator.without_kernel.begin(), accelerator.without_kernel.end());
  }
  common.without_kernel.assign(without.begin(), without.end());
  common.why_alone = WhyAlone(accelerators);
  return common;
}

bool MayBeChosen(const std::optional<DeviceInfo>& accelerator, const JobConfig& job) {
  if (!accelerator.has_value()) return false;
  return accelerator->kind != DeviceKind::kEmulated ||
         job.cluster.devices == AcceleratorChoice::kEmulated;
}

Result<DeviceProfile> ProfileOf(const JobConfig& job, const std::optional<DeviceInfo>& accelerator,
                                uint32_t threads) {
  const bool card = accelerator.has_value() && accelerator->kind == DeviceKind::kCuda;
  DeviceProfile profile =
      card ? DefaultCardProfile(threads) : EmulatedProfile(job.cluster.emulated, threads);
  if (job.parallel.profile.empty()) return profile;
  DT_TRY(profile, ReadDeviceProfile(job.parallel.profile, std::move(profile)));
  if (accelerator) WarnOfOtherDevice(job.parallel.profile, profile.accelerator, *accelerator);
  return profile;
}

}  // namespace dt::scheduler
