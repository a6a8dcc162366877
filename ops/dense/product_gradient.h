// What the specifications of matrix products share.
#pragma once

#include "ops/op_spec.h"

namespace dt {

// Of the operator `op` (matmul, batch_matmul) with its attributes transpose_a and transpose_b. With
// op(a) = A, op(b) = B and D the gradient of AB: dA = D Bᵀ and dB = Aᵀ D, each transposed back.
// They are made in the same `math`.
void AddProductGradient(GradientContext& context, std::string_view op);

// The attribute `math`, where an operator takes it: fp32; tf32, as fp32 on the processor; or bf16:
// operands are rounded to it, sums are float. Error: any other word.
Status ExpectMath(const InferContext& context);

}  // namespace dt
