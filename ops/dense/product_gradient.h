// The gradient of matrix products, single or in batches.
#pragma once

#include "ops/op_spec.h"

namespace dt {

// Of the operator `op` (matmul, batch_matmul) with its attributes transpose_a and transpose_b. With
// op(a) = A, op(b) = B and D the gradient of AB: dA = D Bᵀ and dB = Aᵀ D, each transposed back.
void AddProductGradient(GradientContext& context, std::string_view op);

}  // namespace dt
