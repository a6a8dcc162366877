#include "common/device/open_accelerator.h"

#include "common/base/log.h"
#include "common/device/emulated_accelerator.h"

namespace dt {
namespace {

constexpr std::string_view kNameOfEmulated = "emulated accelerator";

DeviceInfo Emulated(const ClusterConfig& cluster) {
  return {.kind = DeviceKind::kEmulated,
          .index = 0,
          .name = std::string(kNameOfEmulated),
          .memory_bytes = cluster.emulated.memory_bytes};
}

Result<DeviceInfo> FirstCard() {
  DT_TRY(const std::vector<DeviceInfo> cards, FindCudaDevices());
  return cards.front();
}

Result<std::unique_ptr<Accelerator>> OpenEmulated(const EmulatedConfig& config,
                                                  std::function<bool()> skip_delays) {
  return EmulatedAccelerator::Create(
      {.memory_bytes = config.memory_bytes,
       .speed = {.flops = config.flops,
                 .memory_bytes = static_cast<double>(config.memory_bandwidth),
                 .link_bytes = static_cast<double>(config.link_bandwidth)},
       .skip_delays = std::move(skip_delays)});
}

}  // namespace

Result<std::optional<DeviceInfo>> FindAccelerator(const ClusterConfig& cluster) {
  if (cluster.devices == AcceleratorChoice::kCpu) return std::nullopt;
  if (cluster.devices == AcceleratorChoice::kEmulated) return Emulated(cluster);
  Result<DeviceInfo> card = FirstCard();
  if (!card.ok() && cluster.devices == AcceleratorChoice::kAuto) return Emulated(cluster);
  if (!card.ok()) return card.status();
  return *std::move(card);
}

Result<std::unique_ptr<Accelerator>> OpenAccelerator(const ClusterConfig& cluster,
                                                     std::function<bool()> skip_delays) {
  switch (cluster.devices) {
    case AcceleratorChoice::kCpu:
      return WithHint(Unavailable("nodes are to be on an accelerator, and cluster.devices is cpu"),
                      "set cluster.devices to auto, cuda or emulated");
    case AcceleratorChoice::kEmulated:
      return OpenEmulated(cluster.emulated, std::move(skip_delays));
    case AcceleratorChoice::kAuto:
    case AcceleratorChoice::kCuda:
      break;
  }
  const Result<DeviceInfo> card = FirstCard();
  if (card.ok()) return OpenCudaAccelerator(card->index);
  if (cluster.devices == AcceleratorChoice::kCuda) return card.status();
  // Not a warning: the scheduler warns of it once for all workers.
  LogInfo("device.emulated",
          {{"why", MessageOf(card.status())}, {"memory_bytes", cluster.emulated.memory_bytes}});
  return OpenEmulated(cluster.emulated, std::move(skip_delays));
}

}  // namespace dt
