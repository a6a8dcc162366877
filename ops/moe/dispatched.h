// Helper of the specifications of this family.
#pragma once

#include "ops/op_spec.h"

namespace dt {

// The dispatch whose output `output` is input `i`, since kernels trust its numbers to be within its
// rows. nullptr if the input comes from outside the graph. Error: another operator made it.
Result<const Node*> DispatchOf(const InferContext& context, size_t i, size_t output);

}  // namespace dt
