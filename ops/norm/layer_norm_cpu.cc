#include <cmath>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// Mean and 1 / √(variance + epsilon) of a row.
template <class T>
struct RowStatistics {
  T mean, inv_std;
};
template <class T>
RowStatistics<T> Measure(const T* __restrict x, size_t n, double epsilon) {
  const T share = T(1) / static_cast<T>(n);
  const T mean = SumOf(x, n) * share;
  T lanes[8] = {};  // Eight lanes, as in SumOf.
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t k = 0; k < 8; ++k) lanes[k] += (x[i + k] - mean) * (x[i + k] - mean);
  }
  for (size_t k = 0; i < n; ++i, ++k) lanes[k] += (x[i] - mean) * (x[i] - mean);
  const T variance = SumOf(lanes, 8) * share;
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
    T sums[8] = {}, products[8] = {};
    const auto add = [&, mean = mean, inv_std = inv_std](size_t c, size_t lane) {
      const T normal = (from[c] - mean) * inv_std, g = grad[c] * gamma[c];
      to[c] = normal;
      sums[lane] += g;
      products[lane] += g * normal;
      dgamma[c] += grad[c] * normal;
      dbeta[c] += grad[c];
    };
    size_t c = 0;
    for (; c + 8 <= cols; c += 8) {
      for (size_t k = 0; k < 8; ++k) add(c + k, k);
    }
    for (size_t k = 0; c < cols; ++c, ++k) add(c, k);
    const T share = T(1) / static_cast<T>(cols);
    const T of_g = SumOf(sums, 8) * share, of_product = SumOf(products, 8) * share;
    for (c = 0; c < cols; ++c) {
      to[c] = inv_std * (grad[c] * gamma[c] - of_g - to[c] * of_product);
    }
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
