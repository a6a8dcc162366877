#include "worker/engine/device_kernels.h"

#include "common/device/cuda_library.h"
#include "ops/kernel.h"
#include "ops/op_spec.h"

namespace dt::worker {

std::vector<std::string> OperatorsWithoutKernel(const CudaTable& table) {
  std::vector<std::string> without;
  for (const OpSpec* op : AllOps()) {
    std::string name(op->name);
    if (FindKernel(name) == nullptr || table.find_kernel(name.c_str()) != nullptr) continue;
    without.push_back(std::move(name));
  }
  return without;
}

Result<std::optional<DeviceInfo>> FindAcceleratorWithKernels(const ClusterConfig& cluster) {
  DT_TRY(std::optional<DeviceInfo> found, FindAccelerator(cluster));
  if (!found || found->kind != DeviceKind::kCuda) return found;
  const Result<CudaLibrary> cuda = CudaLibrary::OpenForCards();
  if (cuda.ok()) found->without_kernel = OperatorsWithoutKernel(cuda->table());
  return found;
}

}  // namespace dt::worker
