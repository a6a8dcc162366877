// What the .cu files share: a stream with what is launched on it, and errors as text.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "common/device/cuda_table.h"

namespace dt {

// One thread at a time. The workspace is for cuBLASLt calls on this stream, which use it one after
// the other.
struct CudaStream {
  explicit CudaStream(int32_t on) : device(on) {}
  ~CudaStream();  // When its work is done.
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  const int32_t device;
  cudaStream_t stream = nullptr;
  cublasLtHandle_t blas = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

// Takes the error from the thread, so that no later launch is blamed for it.
inline CudaError TextOf(cudaError_t error) {
  if (error == cudaSuccess) return nullptr;
  cudaGetLastError();
  return cudaGetErrorString(error);
}
inline CudaError TextOf(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? nullptr : cublasLtGetStatusString(status);
}

// The stream to launch on, after its card has become the thread's. Kernels of a call begin with
// this.
inline cudaStream_t LaunchOn(const CudaStream& on) {
  cudaSetDevice(on.device);  // Cheap if it is already; an error shows at the launch.
  return on.stream;
}

// Everything but find_kernel.
void FillCudaRuntime(CudaTable* table);

}  // namespace dt
