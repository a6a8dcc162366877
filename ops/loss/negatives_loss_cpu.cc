#include <algorithm>
#include <cmath>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// Number of samples in one partial sum.
constexpr size_t kNegativesPiece = 256;

// The scores x of one sample, n of them, the positive item's first. Slopes writes the derivative
// of the loss, times `factor`, to dx.
template <class T>
struct Bpr {
  // log(1 + exp(x_j - x_0)) without overflow.
  static double Loss(const T* x, size_t n) {
    double sum = 0;
    for (size_t j = 1; j < n; ++j) {
      const double above = double{x[j]} - double{x[0]};
      sum += (above > 0 ? above : 0) + std::log1p(std::exp(-std::fabs(above)));
    }
    return sum / static_cast<double>(n - 1);
  }
  static void Slopes(const T* x, size_t n, double factor, T* dx) {
    const double share = factor / static_cast<double>(n - 1);
    double positive = 0;
    for (size_t j = 1; j < n; ++j) {
      const double slope = share / (1 + std::exp(double{x[0]} - double{x[j]}));
      positive -= slope;
      dx[j] = static_cast<T>(slope);
    }
    dx[0] = static_cast<T>(positive);
  }
};

template <class T>
struct SampledSoftmax {
  static double SumOfExp(const T* x, size_t n, double top) {
    double sum = 0;
    for (size_t j = 0; j < n; ++j) sum += std::exp(double{x[j]} - top);
    return sum;
  }
  static double Loss(const T* x, size_t n) {
    const double top{*std::max_element(x, x + n)};
    return std::log(SumOfExp(x, n, top)) + top - double{x[0]};
  }
  static void Slopes(const T* x, size_t n, double factor, T* dx) {
    const double top{*std::max_element(x, x + n)}, sum = SumOfExp(x, n, top);
    for (size_t j = 0; j < n; ++j) {
      const double own = j == 0 ? 1 : 0;
      dx[j] = static_cast<T>(factor * (std::exp(double{x[j]} - top) / sum - own));
    }
  }
};

// Scores, and weights (or nullptr), starting at input `first`.
template <class T>
struct ScoreRows {
  size_t samples, width;
  const T *x, *weight;
  ScoreRows(const KernelContext& context, size_t first)
      : x(DataOf<T>(context.in(first))),
        weight(context.inputs.size() > first + 1 ? DataOf<T>(context.in(first + 1)) : nullptr) {
    const MatrixShape shape = AsMatrix(context.in(first));
    samples = shape.rows, width = shape.cols;
  }
  double weight_of(size_t i) const { return weight == nullptr ? 1.0 : double{weight[i]}; }
};

// Computed in float64, with partial sums of kNegativesPiece samples in order.
template <template <class> class LossFunction>
void NegativesLoss(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const ScoreRows<T> rows(context, 0);
    const size_t pieces = (rows.samples + kNegativesPiece - 1) / kNegativesPiece;
    const std::span<double> parts = Scratch<double>(context, pieces);
    context.pool.ParallelFor(rows.samples, kNegativesPiece, [&](size_t begin, size_t end) {
      double sum = 0;
      for (size_t i = begin; i < end; ++i) {
        sum += rows.weight_of(i) * LossFunction<T>::Loss(rows.x + i * rows.width, rows.width);
      }
      parts[begin / kNegativesPiece] = sum;
    });
    double total = 0;
    for (const double part : parts) total += part;
    context.out(0).as<T>()[0] = static_cast<T>(total / context.run.step_samples);
  });
}

template <template <class> class LossFunction>
void NegativesGrad(KernelContext& context) {
  OnFloat(context.in(1).dtype, [&]<class T>(T) {
    const ScoreRows<T> rows(context, 1);
    const double share = static_cast<double>(context.in(0).as<T>()[0]) / context.run.step_samples;
    T* const out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(rows.samples, RowGrain(rows.width), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t at = i * rows.width;
        LossFunction<T>::Slopes(rows.x + at, rows.width, share * rows.weight_of(i), out + at);
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"bpr", NegativesLoss<Bpr>},
    {"bpr_grad", NegativesGrad<Bpr>},
    {"sampled_softmax", NegativesLoss<SampledSoftmax>},
    {"sampled_softmax_grad", NegativesGrad<SampledSoftmax>},
};

}  // namespace

std::span<const NamedKernel> NegativesLossKernels() { return kKernels; }

}  // namespace dt
