// The outer product of two rows and its gradient, for kernels.
#pragma once

#include "ops/kernel_util.h"

namespace dt {

// Sizes of the rows x (p elements), y (q) and their products (p q).
struct OuterRows {
  size_t p, q;

  template <class T>
  void Multiply(const T* __restrict x, const T* __restrict y, T* __restrict z) const {
    for (size_t i = 0; i < p; ++i) {
      for (size_t j = 0; j < q; ++j) z[i * q + j] = x[i] * y[j];
    }
  }
  // dx_i = Σ_j dz_ij y_j, and dy_j = Σ_i x_i dz_ij in order of i.
  template <class T>
  void Gradient(const T* x, const T* y, const T* dz, T* dx, T* dy) const {
    std::fill_n(dy, q, T(0));
    for (size_t i = 0; i < p; ++i) {
      dx[i] = DotOf(dz + i * q, y, q);
      AddScaled(x[i], dz + i * q, dy, q);
    }
  }
};

}  // namespace dt
