#include <cmath>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/vector_lanes.h"

namespace dt {
namespace {

// Adds the lanes as SumOf does.
template <class T>
T AddUp(const Lanes<T>& lanes) {
  T all[kLanes];
  LanesAt(all) = lanes;
  return SumOf(all, kLanes);
}

// Mean and 1 / √(variance + epsilon) of a row.
template <class T>
struct RowStatistics {
  T mean, inv_std;
};
template <class T>
RowStatistics<T> Measure(const T* __restrict x, size_t n, double epsilon) {
  const T share = T(1) / static_cast<T>(n);
  const T mean = SumOf(x, n) * share;
  Lanes<T> squares = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Lanes<T> off = LanesAt(x + i) - mean;
    squares += off * off;
  }
  for (size_t k = 0; i < n; ++i, ++k) squares[k] += (x[i] - mean) * (x[i] - mean);
  const T variance = AddUp<T>(squares) * share;
  return {mean, T(1) / std::sqrt(variance + static_cast<T>(epsilon))};
}

void LayerNorm(KernelContext& context) {
  const double epsilon = FloatAttr(context.node.attrs, "epsilon", 1e-5);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const T* xs = DataOf<T>(context.in(0));
    const T *gamma = DataOf<T>(context.in(1)), *beta = DataOf<T>(context.in(2));
    T* out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const T* __restrict x = xs + r * shape.cols;
        T* __restrict y = out + r * shape.cols;
        const auto [mean, inv_std] = Measure(x, shape.cols, epsilon);
        for (size_t c = 0; c < shape.cols; ++c) {
          y[c] = (x[c] - mean) * inv_std * gamma[c] + beta[c];
        }
      }
    });
  });
}

// With x̂ the normalised x and g = γ dy: dβ = Σ dy, dγ = Σ dy x̂ over the rows;
// dx = inv_std (g - mean(g) - x̂ mean(g x̂)), means over the row.
template <class T>
struct NormGrad {
  size_t cols;
  double epsilon;
  const T *x, *gamma, *dy;
  T* dx;

  // dx holds x̂ in between.
  void Row(size_t r, T* __restrict dgamma, T* __restrict dbeta) const {
    const T* __restrict from = x + r * cols;
    const T* __restrict grad = dy + r * cols;
    T* __restrict to = dx + r * cols;
    const auto [mean, inv_std] = Measure(from, cols, epsilon);
    Lanes<T> sums = {}, products = {};
    size_t c = 0;
    for (; c + kLanes <= cols; c += kLanes) {
      const Lanes<T> dy_here = LanesAt(grad + c);
      const Lanes<T> normal = (LanesAt(from + c) - mean) * inv_std;
      const Lanes<T> g = dy_here * LanesAt(gamma + c);
      LanesAt(to + c) = normal;
      sums += g;
      products += g * normal;
      LanesAt(dgamma + c) += dy_here * normal;
      LanesAt(dbeta + c) += dy_here;
    }
    for (size_t k = 0; c < cols; ++c, ++k) {
      const T normal = (from[c] - mean) * inv_std, g = grad[c] * gamma[c];
      to[c] = normal;
      sums[k] += g;
      products[k] += g * normal;
      dgamma[c] += grad[c] * normal;
      dbeta[c] += grad[c];
    }
    const T share = T(1) / static_cast<T>(cols);
    const T of_g = AddUp<T>(sums) * share, of_product = AddUp<T>(products) * share;
    for (c = 0; c + kLanes <= cols; c += kLanes) {
      const Lanes<T> g = LanesAt(grad + c) * LanesAt(gamma + c);
      LanesAt(to + c) = inv_std * (g - of_g - LanesAt(to + c) * of_product);
    }
    for (; c < cols; ++c) to[c] = inv_std * (grad[c] * gamma[c] - of_g - to[c] * of_product);
  }
};

void LayerNormGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const NormGrad<T> grad{.cols = shape.cols,
                           .epsilon = FloatAttr(context.node.attrs, "epsilon", 1e-5),
                           .x = DataOf<T>(context.in(0)),
                           .gamma = DataOf<T>(context.in(1)),
                           .dy = DataOf<T>(context.in(2)),
                           .dx = DataOf<T>(context.out(0))};
    const auto sums = SumOverRows<T>(context, shape.rows, 2 * shape.cols,
                                     [&](size_t begin, size_t end, T* partial) {
                                       for (size_t r = begin; r < end; ++r)
                                         grad.Row(r, partial, partial + shape.cols);
                                     });
    std::ranges::copy(sums.first(shape.cols), DataOf<T>(context.out(1)));
    std::ranges::copy(sums.subspan(shape.cols), DataOf<T>(context.out(2)));
  });
}

constexpr NamedKernel kKernels[] = {
    {"layer_norm", LayerNorm},
    {"layer_norm_grad", LayerNormGrad},
};

}  // namespace

std::span<const NamedKernel> LayerNormKernels() { return kKernels; }

}  // namespace dt
