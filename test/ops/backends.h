// Where a case can run beside the CPU.
#pragma once

#include <memory>

#include "common/device/cuda_table.h"
#include "test/ops/op_case.h"

namespace dt::test {

// The CPU's kernels on the memory of the emulated accelerator.
std::unique_ptr<Backend> MakeEmulatedBackend();

// The kernels that a table has. The sizes other than B are given as capacities above the true ones,
// and what lies between is NaN. Ends the test's process if a kernel writes beside a tensor or its
// scratch memory, or changes an input of an operator that does not work in place. `table` outlives
// it.
std::unique_ptr<Backend> MakeCudaBackend(const CudaTable& table, int32_t device);

}  // namespace dt::test
