// The CUDA kernels compiled for the processor: their arithmetic, indexing and order, without a
// card. See cuda_runtime.h here.
#pragma once

#include "common/device/cuda_table.h"

namespace dt::test {

// Memory, streams, copies and kernels only. "Device" memory is the host's, so addresses may be
// followed.
CudaTable TableOnHost();

}  // namespace dt::test
