// The part of CudaTable that calls NCCL, which the library loads when it is asked for it. Plain
// data only. Functions with a stream give it work and do not wait; `state` tells when their part on
// the host has ended. Errors as in cuda_table.h; those of a communicator are final.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dt {

using CudaError = const char*;
struct CudaStream;
struct NcclComm;  // Owned by the library; used by one thread at a time.

struct NcclId {
  char bytes[128] = {};
};

// `type` is a dt::DType: kF32, kF64, kBf16, or kU32 for any bytes, four at a time.
struct NcclCount {
  size_t elements = 0;
  uint8_t type = 0;
};

struct NcclReduce {
  const void* in = nullptr;
  void* out = nullptr;
  NcclCount count;
  bool max = false;  // The maximum instead of the sum.
};

struct NcclTable {
  // An error tells why there is no NCCL; the other functions need success.
  CudaError (*load)() = nullptr;
  CudaError (*make_id)(NcclId* out) = nullptr;
  // Begins to join the communicator of an id, which begins to exist when all its ranks have joined.
  CudaError (*join)(int32_t device, int32_t ranks, int32_t rank, const NcclId* id,
                    NcclComm** out) = nullptr;
  CudaError (*state)(NcclComm* comm, bool* busy) = nullptr;
  // Begins to leave; it ends, as `state` tells, when all ranks leave. Then `free` may be called.
  CudaError (*finish)(NcclComm* comm) = nullptr;
  void (*free)(NcclComm* comm) = nullptr;
  // Leaves without waiting for anybody, and frees it. Unfinished work of others fails.
  void (*abort)(NcclComm* comm) = nullptr;

  // Calls between the two become one.
  CudaError (*begin_group)() = nullptr;
  CudaError (*end_group)() = nullptr;
  CudaError (*all_reduce)(NcclComm* comm, const NcclReduce& reduce, CudaStream* stream) = nullptr;
  // `count`: of the result. All ranks have as many.
  CudaError (*reduce_scatter)(NcclComm* comm, const NcclReduce& reduce,
                              CudaStream* stream) = nullptr;
  // Only `root` gets the result.
  CudaError (*reduce)(NcclComm* comm, const NcclReduce& reduce, int32_t root,
                      CudaStream* stream) = nullptr;
  // `count`: of `in`. All ranks have as many.
  CudaError (*all_gather)(NcclComm* comm, const void* in, void* out, NcclCount count,
                          CudaStream* stream) = nullptr;
  CudaError (*send)(NcclComm* comm, const void* in, size_t bytes, int32_t to,
                    CudaStream* stream) = nullptr;
  CudaError (*receive)(NcclComm* comm, void* out, size_t bytes, int32_t from,
                       CudaStream* stream) = nullptr;
};

// Defined in nccl_cuda.cu.
void FillNccl(NcclTable* table);

}  // namespace dt
