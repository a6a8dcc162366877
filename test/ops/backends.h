// The back ends, other than the CPU, on which a case can run.
#pragma once

#include <memory>

#include "common/device/cuda_table.h"
#include "test/ops/op_case.h"

namespace dt::test {

// Runs the CPU's kernels on the memory of the emulated accelerator.
std::unique_ptr<Backend> MakeEmulatedBackend();

// Runs the kernels of a table. Capacities of all symbols except B are larger than the sizes, and
// the space between is NaN. Ends the test's process if a kernel writes outside a tensor or its
// scratch memory, or changes an input of an operator that does not work in place. `table` must
// outlive the back end.
std::unique_ptr<Backend> MakeCudaBackend(const CudaTable& table, int32_t device);

}  // namespace dt::test
