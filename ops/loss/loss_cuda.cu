// Losses of one prediction for each sample, computed in double.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"

namespace dt {
namespace {

// log(1 + e^x) - x z without overflow: max(x, 0) - x z + log(1 + e^-|x|).
struct Bce {
  __device__ static double Loss(double x, double z) {
    return (x > 0 ? x : 0) - x * z + log1p(exp(-fabs(x)));
  }
  __device__ static double Slope(double x, double z) { return 1 / (1 + exp(-x)) - z; }
};
struct Mse {
  __device__ static double Loss(double x, double z) { return (x - z) * (x - z); }
  __device__ static double Slope(double x, double z) { return 2 * (x - z); }
};

// Predictions, labels, and weights (or nullptr), starting at input `first`.
template <class T>
struct Samples {
  const T *x, *label, *weight;
  Samples(const CudaCall& call, size_t first)
      : x(DataOf<T>(call.inputs[first])),
        label(DataOf<T>(call.inputs[first + 1])),
        weight(call.input_count > first + 2 ? DataOf<T>(call.inputs[first + 2]) : nullptr) {}
  __device__ double WeightOf(int64_t i) const {
    return weight == nullptr ? 1.0 : static_cast<double>(ToFloat(weight[i]));
  }
};

template <class T, class LossFunction>
struct LossOf {
  Samples<T> samples;
  __device__ double operator()(int64_t i, const CudaRun&) const {
    const double x = ToFloat(samples.x[i]), z = ToFloat(samples.label[i]);
    return samples.WeightOf(i) * LossFunction::Loss(x, z);
  }
};
template <class T>
struct StoreMean {
  T* out;
  __device__ void operator()(double sum, const CudaRun& run) const {
    out[0] = To<T>(static_cast<float>(sum / run.step_samples));
  }
};
size_t LossScratch(const CudaCall& call) { return SumElementsBytes(SizeOf(call.inputs[0])); }

template <class LossFunction>
CudaError Loss(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    SumElements(call, SizeOf(call.inputs[0]), static_cast<double*>(call.scratch),
                LossOf<T, LossFunction>{Samples<T>(call, 0)},
                StoreMean<T>{DataOf<T>(call.outputs[0])});
  });
}

template <class T, class LossFunction>
struct SlopeOf {
  Samples<T> samples;
  const T* dloss;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const double share = static_cast<double>(ToFloat(dloss[0])) / run.step_samples;
    const double slope = LossFunction::Slope(ToFloat(samples.x[i]), ToFloat(samples.label[i]));
    out[i] = To<T>(static_cast<float>(share * samples.WeightOf(i) * slope));
  }
};
template <class LossFunction>
CudaError LossGrad(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(call.inputs[1]),
            SlopeOf<T, LossFunction>{Samples<T>(call, 1), DataOf<T>(call.inputs[0]),
                                     DataOf<T>(call.outputs[0])});
  });
}

constexpr CudaKernel kKernels[] = {
    {"bce_with_logits", Loss<Bce>, LossScratch},
    {"bce_with_logits_grad", LossGrad<Bce>},
    {"mse", Loss<Mse>, LossScratch},
    {"mse_grad", LossGrad<Mse>},
};

}  // namespace

CudaKernelList LossCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
