// Matrix products. Row-major and densely packed: C [m, n] = op(A) [m, k] · op(B) [k, n].
#pragma once

#include <cstddef>

#include "common/runtime/task_pool.h"

namespace dt {

struct GemmShape {
  size_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // A lies as [k, m], B as [n, k].
};

// One oneDNN call, on one thread, for each tile of C. Tiles follow from the shape alone and k is
// never cut, so the bits do not depend on the number of threads.
void Gemm(TaskPool& pool, const GemmShape& shape, const float* a, const float* b, float* c);
// Plain loops, for gradient checks.
void Gemm(TaskPool& pool, const GemmShape& shape, const double* a, const double* b, double* c);

}  // namespace dt
