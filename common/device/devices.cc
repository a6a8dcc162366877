#include "common/device/devices.h"

#include <thread>
#include <unistd.h>

#include "common/base/check.h"
#include "common/device/cuda_library.h"

namespace dt {

std::string_view NameOf(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kCuda:
      return "cuda";
    case DeviceKind::kEmulated:
      return "emulated";
  }
  DT_UNREACHABLE();
}

DeviceInfo HostDevice() {
  const auto pages = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  const auto page_bytes = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
  return {.kind = DeviceKind::kCpu,
          .index = 0,
          .name = fmt::format("{} hardware threads", std::thread::hardware_concurrency()),
          .memory_bytes = pages * page_bytes};
}

std::string UuidText(const CudaDevice& card) {
  std::string text;
  for (const char byte : card.uuid) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

std::string WhyAlone(const CudaTable& table) {
  if (table.nccl.load == nullptr) return "the CUDA library has no NCCL";
  const CudaError why = table.nccl.load();
  return why == nullptr ? "" : why;
}

Result<std::vector<DeviceInfo>> FindCudaDevices() {
  DT_TRY(const CudaLibrary cuda, CudaLibrary::OpenForCards());
  DT_TRY(const int count, cuda.CountDevices());
  std::vector<DeviceInfo> devices;
  Status last = OkStatus();
  for (int i = 0; i < count; ++i) {
    const Result<CudaDevice> found = cuda.Describe(i);
    last = found.ok() ? cuda.Probe(i) : found.status();
    if (!last.ok()) continue;
    devices.push_back({.kind = DeviceKind::kCuda,
                       .index = i,
                       .name = found->name,
                       .memory_bytes = found->memory_bytes,
                       .uuid = UuidText(*found),
                       .why_alone = WhyAlone(cuda.table())});
  }
  if (devices.empty()) return last;
  return devices;
}

}  // namespace dt
