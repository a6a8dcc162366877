// Declares the kernels that each CUDA source adds to find_kernel's table.
#pragma once

#include <cstddef>

#include "common/device/cuda_table.h"
#include "ops/families.h"

namespace dt {

struct CudaKernelList {
  const CudaKernel* kernels;
  size_t count;
};
template <size_t count>
CudaKernelList ListOf(const CudaKernel (&kernels)[count]) {
  return {kernels, count};
}

// nullptr if the operator has no CUDA kernel.
const CudaKernel* FindCudaKernel(const char* op);

#define DT_DECLARE_KERNELS(File) CudaKernelList File##CudaKernels();
DT_CUDA_FILES(DT_DECLARE_KERNELS)
#undef DT_DECLARE_KERNELS

}  // namespace dt
