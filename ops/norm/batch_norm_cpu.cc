#include <cmath>
#include <vector>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/norm/dropout_mask_cpu.h"

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

// Calls finish(r, row) for each row of output 0, while it is in cache.
template <class T, class Finish>
void Normalise(KernelContext& context, const Statistics<T>& by, const Finish& finish) {
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
      finish(r, std::span(to, shape.cols));
    }
  });
}

template <class T, class Finish>
void NormaliseBatch(KernelContext& context, const Finish& finish) {
  const double epsilon = FloatAttr(context.node.attrs, "epsilon", 1e-5);
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
  Normalise(context, by, finish);
}

void BatchNorm(KernelContext& context) {
  OnFloat(context.in(0).dtype,
          [&]<class T>(T) { NormaliseBatch<T>(context, [](size_t, std::span<T>) {}); });
}

void NormLayer(KernelContext& context) {
  const double rate = FloatAttr(context.node.attrs, "dropout", 0);
  const DropoutMask mask = MaskOf(context.run, context.node.name, rate);
  const bool masked = rate > 0 && context.run.training;
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    NormaliseBatch<T>(context, [&](size_t r, std::span<T> row) {
      for (T& y : row) y = y > T(0) ? y : T(0);
      if (masked) MaskSample<T>(mask, context.run.first_sample + r, row.data(), row);
    });
  });
}

template <class T>
struct BatchNormInputs {
  MatrixShape shape;
  const T *dy, *x, *gamma, *mean, *inv_std;
  explicit BatchNormInputs(const KernelContext& context)
      : shape(AsMatrix(context.in(0))),
        dy(DataOf<T>(context.in(0))),
        x(DataOf<T>(context.in(1))),
        gamma(DataOf<T>(context.in(2))),
        mean(DataOf<T>(context.in(3))),
        inv_std(DataOf<T>(context.in(4))) {}
};

// The gradients of a row of y, as batch_norm_grad gets them.
template <class T>
struct GivenGradients {
  const T* dy;
  size_t cols;
  const T* Row(size_t r) const { return dy + r * cols; }
};
// The gradients of a row of norm_layer's y, as its dropout and ReLU let them through. The result is
// in this thread's memory until the next call.
template <class T>
struct PassedGradients {
  const T *dy, *y;
  T scale;
  size_t cols;
  const T* Row(size_t r) const {
    thread_local std::vector<T> row;
    row.resize(cols);
    const T* __restrict dys = dy + r * cols, * __restrict ys = y + r * cols;
    T* __restrict to = row.data();
    for (size_t c = 0; c < cols; ++c) {
      const T kept = dys[c] * scale;
      to[c] = ys[c] > T(0) ? kept : T(0);
    }
    return to;
  }
};

// dβ = Σ dy to output 2, and dγ = Σ dy x̂ to output 1, where x̂ is the normalised x.
template <class T, class Gradients>
void SumGradients(KernelContext& context, const Gradients& gradients) {
  const BatchNormInputs<T> in(context);
  const size_t cols = in.shape.cols;
  const auto sums = SumOverRows<T>(context, in.shape.rows, 2 * cols,
                                   [&](size_t begin, size_t end, T* __restrict partial) {
                                     for (size_t r = begin; r < end; ++r) {
                                       const T *dy = gradients.Row(r), *x = in.x + r * cols;
                                       for (size_t c = 0; c < cols; ++c) {
                                         partial[c] += dy[c] * (x[c] - in.mean[c]) * in.inv_std[c];
                                       }
                                       AddTo(dy, partial + cols, cols);
                                     }
                                   });
  std::ranges::copy(sums.first(cols), DataOf<T>(context.out(1)));
  std::ranges::copy(sums.subspan(cols), DataOf<T>(context.out(2)));
}

// dx = γ inv_std (dy - dβ / n - x̂ dγ / n) for a row of x, where n is the number of samples.
template <class T>
struct InputGradient {
  BatchNormInputs<T> in;
  const T *dgamma, *dbeta;
  T share;
  explicit InputGradient(const KernelContext& context)
      : in(context),
        dgamma(DataOf<T>(context.out(1))),
        dbeta(DataOf<T>(context.out(2))),
        share(in.shape.rows == 0 ? T(0) : T(1) / static_cast<T>(in.shape.rows)) {}

  void Row(const T* __restrict dy, const T* __restrict x, T* __restrict dx) const {
    for (size_t c = 0; c < in.shape.cols; ++c) {
      const T normal = (x[c] - in.mean[c]) * in.inv_std[c];
      dx[c] = in.gamma[c] * in.inv_std[c] * (dy[c] - (dbeta[c] + normal * dgamma[c]) * share);
    }
  }
};

void BatchNormGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const InputGradient<T> gradient(context);
    const MatrixShape shape = gradient.in.shape;
    const GivenGradients<T> given{gradient.in.dy, shape.cols};
    SumGradients<T>(context, given);
    T* const dx = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const size_t at = r * shape.cols;
        gradient.Row(given.Row(r), gradient.in.x + at, dx + at);
      }
    });
  });
}

// Output 3, the sums of output 0's rows, has the same bits as reduce_batch.
void NormLayerBack(KernelContext& context) {
  const double kept = 1 - FloatAttr(context.node.attrs, "dropout", 0);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const InputGradient<T> gradient(context);
    const auto [rows, cols] = gradient.in.shape;
    const PassedGradients<T> passed{gradient.in.dy, DataOf<T>(context.in(5)),
                                    static_cast<T>(1 / kept), cols};
    SumGradients<T>(context, passed);
    T* const dx = DataOf<T>(context.out(0));
    const auto sums =
        SumOverRows<T>(context, rows, cols, [&](size_t begin, size_t end, T* partial) {
          for (size_t r = begin; r < end; ++r) {
            const size_t at = r * gradient.in.shape.cols;
            gradient.Row(passed.Row(r), gradient.in.x + at, dx + at);
            AddTo(dx + at, partial, gradient.in.shape.cols);
          }
        });
    std::ranges::copy(sums, DataOf<T>(context.out(3)));
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
    {"norm_layer", NormLayer},
    {"norm_layer_back", NormLayerBack},
    {"batch_norm_running", BatchNormRunning},
    {"batch_norm_statistics", BatchNormStatistics},
    {"in_training", InTraining},
};

}  // namespace

std::span<const NamedKernel> BatchNormKernels() { return kKernels; }

}  // namespace dt
