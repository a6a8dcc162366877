// Losses of a positive item against negative ones, computed in double, a sample by a thread.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"

namespace dt {
namespace {

// The scores x of one sample, n of them, the positive item's first. Slopes writes the derivative
// of the loss, times `factor`, to dx.
struct Bpr {
  // log(1 + exp(x_j - x_0)) without overflow.
  template <class T>
  __device__ static double Loss(const T* x, int64_t n) {
    double sum = 0;
    for (int64_t j = 1; j < n; ++j) {
      const double above = static_cast<double>(ToFloat(x[j])) - static_cast<double>(ToFloat(x[0]));
      sum += (above > 0 ? above : 0) + log1p(exp(-fabs(above)));
    }
    return sum / static_cast<double>(n - 1);
  }
  template <class T>
  __device__ static void Slopes(const T* x, int64_t n, double factor, T* dx) {
    const double share = factor / static_cast<double>(n - 1);
    double positive = 0;
    for (int64_t j = 1; j < n; ++j) {
      const double below = static_cast<double>(ToFloat(x[0])) - static_cast<double>(ToFloat(x[j]));
      const double slope = share / (1 + exp(below));
      positive -= slope;
      dx[j] = To<T>(static_cast<float>(slope));
    }
    dx[0] = To<T>(static_cast<float>(positive));
  }
};

struct SampledSoftmax {
  struct Terms {
    double top, sum;  // The largest score, and the sum of exp(x - top).
  };
  template <class T>
  __device__ static Terms TermsOf(const T* x, int64_t n) {
    Terms terms = {static_cast<double>(ToFloat(x[0])), 0};
    for (int64_t j = 1; j < n; ++j) {
      terms.top = fmax(terms.top, static_cast<double>(ToFloat(x[j])));
    }
    for (int64_t j = 0; j < n; ++j) {
      terms.sum += exp(static_cast<double>(ToFloat(x[j])) - terms.top);
    }
    return terms;
  }
  template <class T>
  __device__ static double Loss(const T* x, int64_t n) {
    const Terms terms = TermsOf(x, n);
    return log(terms.sum) + terms.top - static_cast<double>(ToFloat(x[0]));
  }
  template <class T>
  __device__ static void Slopes(const T* x, int64_t n, double factor, T* dx) {
    const Terms terms = TermsOf(x, n);
    for (int64_t j = 0; j < n; ++j) {
      const double p = exp(static_cast<double>(ToFloat(x[j])) - terms.top) / terms.sum;
      dx[j] = To<T>(static_cast<float>(factor * (p - (j == 0 ? 1 : 0))));
    }
  }
};

// Scores, and weights (or nullptr), starting at input `first`.
template <class T>
struct ScoreRows {
  Count cols;
  const T *x, *weight;
  ScoreRows(const CudaCall& call, size_t first)
      : cols(ColsOf(call.inputs[first])),
        x(DataOf<T>(call.inputs[first])),
        weight(call.input_count > first + 1 ? DataOf<T>(call.inputs[first + 1]) : nullptr) {}
  __device__ double WeightOf(int64_t i) const {
    return weight == nullptr ? 1.0 : static_cast<double>(ToFloat(weight[i]));
  }
};

template <class T, class LossFunction>
struct RowLoss {
  ScoreRows<T> rows;
  __device__ double operator()(int64_t i, const CudaRun& run) const {
    const int64_t n = rows.cols.At(run);
    return rows.WeightOf(i) * LossFunction::Loss(rows.x + i * n, n);
  }
};
template <class T>
struct StoreMean {
  T* out;
  __device__ void operator()(double sum, const CudaRun& run) const {
    out[0] = To<T>(static_cast<float>(sum / run.step_samples));
  }
};
size_t NegativesScratch(const CudaCall& call) { return SumElementsBytes(DimOf(call.inputs[0], 0)); }

template <class LossFunction>
CudaError NegativesLoss(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    SumElements(call, DimOf(call.inputs[0], 0), static_cast<double*>(call.scratch),
                RowLoss<T, LossFunction>{ScoreRows<T>(call, 0)},
                StoreMean<T>{DataOf<T>(call.outputs[0])});
  });
}

template <class T, class LossFunction>
struct RowSlopes {
  ScoreRows<T> rows;
  const T* dloss;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t n = rows.cols.At(run);
    const double share = static_cast<double>(ToFloat(dloss[0])) / run.step_samples;
    LossFunction::Slopes(rows.x + i * n, n, share * rows.WeightOf(i), out + i * n);
  }
};
template <class LossFunction>
CudaError NegativesGrad(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, DimOf(call.inputs[1], 0),
            RowSlopes<T, LossFunction>{ScoreRows<T>(call, 1), DataOf<T>(call.inputs[0]),
                                       DataOf<T>(call.outputs[0])});
  });
}

constexpr CudaKernel kKernels[] = {
    {"bpr", NegativesLoss<Bpr>, NegativesScratch},
    {"bpr_grad", NegativesGrad<Bpr>},
    {"sampled_softmax", NegativesLoss<SampledSoftmax>, NegativesScratch},
    {"sampled_softmax_grad", NegativesGrad<SampledSoftmax>},
};

}  // namespace

CudaKernelList NegativesLossCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
