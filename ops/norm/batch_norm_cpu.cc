#include <cmath>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

template <class T>
struct Statistics {
  std::span<T> mean, var, inv_std;
};

// Two passes, each with partial sums of kSumRows rows in order: first the mean, then the squared
// deviations from it.
template <class T>
void Measure(KernelContext& context, const Statistics<T>& to) {
  const MatrixShape shape = AsMatrix(context.in(0));
  const T* x = DataOf<T>(context.in(0));
  const T share = shape.rows == 0 ? T(0) : T(1) / static_cast<T>(shape.rows);
  const auto sums =
      SumOverRows<T>(context, shape.rows, shape.cols, [&](size_t begin, size_t end, T* partial) {
        for (size_t r = begin; r < end; ++r) AddTo(x + r * shape.cols, partial, shape.cols);
      });
  for (size_t c = 0; c < shape.cols; ++c) to.mean[c] = sums[c] * share;
  const T* mean = to.mean.data();
  const auto squares = SumOverRows<T>(context, shape.rows, shape.cols,
                                      [&](size_t begin, size_t end, T* __restrict partial) {
                                        for (size_t r = begin; r < end; ++r) {
                                          const T* row = x + r * shape.cols;
                                          for (size_t c = 0; c < shape.cols; ++c) {
                                            partial[c] += (row[c] - mean[c]) * (row[c] - mean[c]);
                                          }
                                        }
                                      });
  for (size_t c = 0; c < shape.cols; ++c) to.var[c] = squares[c] * share;
}

template <class T>
void Normalise(KernelContext& context, const Statistics<T>& by) {
  const MatrixShape shape = AsMatrix(context.in(0));
  const T* xs = DataOf<T>(context.in(0));
  const T* gamma = DataOf<T>(context.in(1));
  const T* beta = DataOf<T>(context.in(2));
  T* out = DataOf<T>(context.out(0));
  const T *mean = by.mean.data(), *inv_std = by.inv_std.data();
  context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const T* __restrict x = xs + r * shape.cols;
      T* __restrict to = out + r * shape.cols;
      for (size_t c = 0; c < shape.cols; ++c) {
        to[c] = (x[c] - mean[c]) * inv_std[c] * gamma[c] + beta[c];
      }
    }
  });
}

void BatchNorm(KernelContext& context) {
  const double epsilon = FloatAttr(context.node.attrs, "epsilon", 1e-5);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Statistics<T> by{context.out(1).as<T>(), context.out(2).as<T>(), context.out(3).as<T>()};
    const bool training = context.run.training;
    if (training) {
      Measure(context, by);
    } else {
      std::ranges::copy(context.in(3).as<T>(), by.mean.begin());
      std::ranges::copy(context.in(4).as<T>(), by.var.begin());
    }
    for (size_t c = 0; c < by.var.size(); ++c) {
      by.inv_std[c] = T(1) / std::sqrt(by.var[c] + static_cast<T>(epsilon));
    }
    context.out(4).as<T>()[0] = training ? static_cast<T>(context.in(0).shape[0]) : T(0);
    Normalise(context, by);
  });
}

// With x̂ the normalised x and n the number of samples: dβ = Σ dy, dγ = Σ dy x̂,
// dx = γ inv_std (dy - dβ / n - x̂ dγ / n).
void BatchNormGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const size_t cols = shape.cols;
    const T *dys = DataOf<T>(context.in(0)), *xs = DataOf<T>(context.in(1));
    const T *gamma = DataOf<T>(context.in(2)), *mean = DataOf<T>(context.in(3));
    const T* inv_std = DataOf<T>(context.in(4));
    const auto sums = SumOverRows<T>(context, shape.rows, 2 * cols,
                                     [&](size_t begin, size_t end, T* __restrict partial) {
                                       for (size_t r = begin; r < end; ++r) {
                                         const T *dy = dys + r * cols, *x = xs + r * cols;
                                         for (size_t c = 0; c < cols; ++c)
                                           partial[c] += dy[c] * (x[c] - mean[c]) * inv_std[c];
                                         AddTo(dy, partial + cols, cols);
                                       }
                                     });
    T *dgamma = DataOf<T>(context.out(1)), *dbeta = DataOf<T>(context.out(2));
    std::ranges::copy(sums.first(cols), dgamma);
    std::ranges::copy(sums.subspan(cols), dbeta);
    T* out = DataOf<T>(context.out(0));
    const T share = shape.rows == 0 ? T(0) : T(1) / static_cast<T>(shape.rows);
    context.pool.ParallelFor(shape.rows, RowGrain(cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const T* __restrict dy = dys + r * cols, * __restrict x = xs + r * cols;
        T* __restrict dx = out + r * cols;
        for (size_t c = 0; c < cols; ++c) {
          const T normal = (x[c] - mean[c]) * inv_std[c];
          dx[c] = gamma[c] * inv_std[c] * (dy[c] - (dbeta[c] + normal * dgamma[c]) * share);
        }
      }
    });
  });
}

void BatchNormRunning(KernelContext& context) {
  const double momentum = FloatAttr(context.node.attrs, "momentum", 0.1);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(2));
    T *mean = DataOf<T>(context.in(0)), *var = DataOf<T>(context.in(1));
    const T *means = DataOf<T>(context.in(2)), *vars = DataOf<T>(context.in(3));
    const T* counts = DataOf<T>(context.in(4));
    const size_t counted = AsMatrix(context.in(4)).cols;  // 1, or one for each channel, all equal.
    const T fresh = static_cast<T>(momentum), old = static_cast<T>(1 - momentum);
    for (size_t k = 0; k < shape.rows; ++k) {
      const T count = counted == 0 ? T(0) : counts[k * counted];
      if (count == T(0)) continue;
      const T unbiased = count > T(1) ? count / (count - T(1)) : T(1);
      for (size_t c = 0; c < shape.cols; ++c) {
        mean[c] = old * mean[c] + fresh * means[k * shape.cols + c];
        var[c] = old * var[c] + fresh * unbiased * vars[k * shape.cols + c];
      }
    }
  });
}

void InTraining(KernelContext& context) {
  const TensorView& from = context.run.training ? context.in(0) : context.in(1);
  std::memcpy(context.out(0).data, from.data, from.bytes());
}

void BatchNormStatistics(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    std::ranges::copy(context.in(2).as<T>(), DataOf<T>(context.out(0)));
    std::ranges::copy(context.in(3).as<T>(), DataOf<T>(context.out(1)));
    std::ranges::transform(context.in(4).as<T>(), DataOf<T>(context.out(2)),
                           [](T deviation) { return T(1) / deviation; });
    const bool training = context.run.training;
    std::ranges::transform(context.in(5).as<T>(), DataOf<T>(context.out(3)),
                           [=](T count) { return training ? count : T(0); });
  });
}

constexpr NamedKernel kKernels[] = {
    {"batch_norm", BatchNorm},
    {"batch_norm_grad", BatchNormGrad},
    {"batch_norm_running", BatchNormRunning},
    {"batch_norm_statistics", BatchNormStatistics},
    {"in_training", InTraining},
};

}  // namespace

std::span<const NamedKernel> BatchNormKernels() { return kKernels; }

}  // namespace dt
