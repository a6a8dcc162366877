// The lists that make up find_kernel's table: one for each file of CUDA kernels.
#pragma once

#include <cstddef>

#include "common/device/cuda_table.h"

namespace dt {

struct CudaKernelList {
  const CudaKernel* kernels;
  size_t count;
};
template <size_t count>
CudaKernelList ListOf(const CudaKernel (&kernels)[count]) {
  return {kernels, count};
}

// nullptr: the operator has no CUDA kernel.
const CudaKernel* FindCudaKernel(const char* op);

CudaKernelList DenseCudaKernels();
CudaKernelList ElementwiseCudaKernels();
CudaKernelList GatedCudaKernels();
CudaKernelList NormCudaKernels();
CudaKernelList DropoutCudaKernels();
CudaKernelList AttentionCudaKernels();
CudaKernelList ShapeCudaKernels();
CudaKernelList ReduceCudaKernels();
CudaKernelList SparseCudaKernels();
CudaKernelList InteractionCudaKernels();
CudaKernelList OuterCudaKernels();
CudaKernelList MoeCudaKernels();
CudaKernelList LossCudaKernels();
CudaKernelList SoftmaxLossCudaKernels();
CudaKernelList UpdateCudaKernels();
CudaKernelList TableRowCudaKernels();

}  // namespace dt
