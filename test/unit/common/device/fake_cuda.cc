// A CUDA library with three cards: 0 works, 1 computes wrong sums, 2 refuses this build's code.
#include <cstdio>

#include "common/device/cuda_table.h"

namespace dt {
namespace {

CudaError CountDevices(int32_t* count) {
  *count = 3;
  return nullptr;
}

CudaError Describe(int32_t device, CudaDevice* out) {
  if (device < 0 || device > 2) return "invalid device ordinal";
  std::snprintf(out->name, sizeof(out->name), "fake card %d", device);
  out->memory_bytes = 1 << 20;
  return nullptr;
}

CudaError AddF32(int32_t device, const float* a, const float* b, float* out, size_t n) {
  if (device == 2) return "no kernel image is available";
  for (size_t i = 0; i < n; ++i) out[i] = a[i] + (device == 0 ? b[i] : 0);
  return nullptr;
}

}  // namespace
}  // namespace dt

extern "C" bool DtFillCudaTable(uint32_t version, dt::CudaTable* table) {
  *table = {.version = version,
            .count_devices = dt::CountDevices,
            .describe = dt::Describe,
            .add_f32 = dt::AddF32};
  return true;
}
