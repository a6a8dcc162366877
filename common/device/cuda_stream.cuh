// Shared by the .cu files: a stream and its resources, and errors as text.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "common/device/cuda_table.h"

namespace dt {

// One thread at a time. The cuBLASLt calls on this stream share the workspace, one after the other.
struct CudaStream {
  explicit CudaStream(int32_t on) : device(on) {}
  ~CudaStream();  // Waits for the stream's work.
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  const int32_t device;
  cudaStream_t stream = nullptr;
  cublasLtHandle_t blas = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

// Clears CUDA's last error of this thread, so that a later launch does not report it.
inline CudaError TextOf(cudaError_t error) {
  if (error == cudaSuccess) return nullptr;
  cudaGetLastError();
  return cudaGetErrorString(error);
}
inline CudaError TextOf(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? nullptr : cublasLtGetStatusString(status);
}

// Makes the stream's card the current one of the thread and returns the stream. A call does this
// before it launches its kernels.
inline cudaStream_t LaunchOn(const CudaStream& on) {
  cudaSetDevice(on.device);  // Cheap if it is current already; the launch reports an error.
  return on.stream;
}

// Fills all of the table except nccl and find_kernel.
void FillCudaRuntime(CudaTable* table);

}  // namespace dt
