// The only entry of libdovetail_cuda.so, and what the table holds that no family of operators owns.
#include <cstdio>

#include <cuda_runtime.h>

#include "common/device/cuda_table.h"

namespace dt {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kBlocksMax = 4096;

CudaError TextOf(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

// Device memory that goes with its scope.
class DeviceFloats {
 public:
  explicit DeviceFloats(size_t count) : error_(cudaMalloc(&data_, count * sizeof(float))) {}
  ~DeviceFloats() {
    if (error_ == cudaSuccess) cudaFree(data_);
  }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;

  cudaError_t error() const { return error_; }
  float* data() const { return data_; }

 private:
  float* data_ = nullptr;
  cudaError_t error_;
};

__global__ void AddKernel(const float* a, const float* b, float* out, size_t n) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    out[i] = a[i] + b[i];
  }
}

cudaError_t AddOn(int32_t device, const float* a, const float* b, float* out, size_t n) {
  if (cudaError_t e = cudaSetDevice(device); e != cudaSuccess) return e;
  const DeviceFloats left(n), right(n), sum(n);
  for (const DeviceFloats* buffer : {&left, &right, &sum}) {
    if (buffer->error() != cudaSuccess) return buffer->error();
  }
  const size_t bytes = n * sizeof(float);
  if (cudaError_t e = cudaMemcpy(left.data(), a, bytes, cudaMemcpyHostToDevice)) return e;
  if (cudaError_t e = cudaMemcpy(right.data(), b, bytes, cudaMemcpyHostToDevice)) return e;
  const size_t blocks = (n + kThreads - 1) / kThreads;
  AddKernel<<<static_cast<uint32_t>(blocks < kBlocksMax ? blocks : kBlocksMax), kThreads>>>(
      left.data(), right.data(), sum.data(), n);
  if (cudaError_t e = cudaGetLastError()) return e;
  return cudaMemcpy(out, sum.data(), bytes, cudaMemcpyDeviceToHost);  // Waits for the kernel.
}

CudaError CountDevices(int32_t* count) {
  int found = 0;
  const cudaError_t error = cudaGetDeviceCount(&found);
  *count = error == cudaSuccess ? found : 0;
  return TextOf(error);
}

CudaError Describe(int32_t device, CudaDevice* out) {
  cudaDeviceProp properties{};
  if (cudaError_t e = cudaGetDeviceProperties(&properties, device)) return TextOf(e);
  std::snprintf(out->name, sizeof(out->name), "%s", properties.name);
  out->memory_bytes = properties.totalGlobalMem;
  out->major = properties.major;
  out->minor = properties.minor;
  return nullptr;
}

CudaError AddF32(int32_t device, const float* a, const float* b, float* out, size_t n) {
  // A grid may not be empty.
  return n == 0 ? nullptr : TextOf(AddOn(device, a, b, out, n));
}

}  // namespace
}  // namespace dt

extern "C" __attribute__((visibility("default"))) bool DtFillCudaTable(uint32_t version,
                                                                       dt::CudaTable* table) {
  if (version != dt::kCudaTableVersion) return false;
  *table = {.version = version,
            .count_devices = dt::CountDevices,
            .describe = dt::Describe,
            .add_f32 = dt::AddF32};
  return true;
}
