// What the specifications of this family share.
#pragma once

#include "ops/op_spec.h"

namespace dt {

// The dispatch whose output `output` is input `i`: kernels trust its numbers to lie within its
// rows. nullptr: it comes from outside the graph. Error: another operator gives it.
Result<const Node*> DispatchOf(const InferContext& context, size_t i, size_t output);

}  // namespace dt
