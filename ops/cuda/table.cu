// The only exported function of libdovetail_cuda.so.
#include "common/device/cuda_stream.cuh"
#include "ops/cuda/kernels.cuh"

extern "C" __attribute__((visibility("default"))) bool DtFillCudaTable(uint32_t version,
                                                                       dt::CudaTable* table) {
  if (version != dt::kCudaTableVersion) return false;
  dt::FillCudaRuntime(table);
  dt::FillNccl(&table->nccl);
  table->find_kernel = dt::FindCudaKernel;
  return true;
}
