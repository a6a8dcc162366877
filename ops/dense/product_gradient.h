// Helpers of the specifications of matrix products.
#pragma once

#include "ops/op_spec.h"

namespace dt {

// The gradient of operator `op` (matmul or batch_matmul) with its attributes transpose_a and
// transpose_b. With op(a) = A, op(b) = B and D the gradient of AB: dA = D Bᵀ and dB = Aᵀ D, each
// transposed back if needed. These products use the same `math`.
void AddProductGradient(GradientContext& context, std::string_view op);

// Checks the attribute `math`: fp32; tf32, which is fp32 on the CPU; or bf16 (operands rounded to
// bf16, sums in float). Error: any other word.
Status ExpectMath(const InferContext& context);

}  // namespace dt
