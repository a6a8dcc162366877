// Losses of one prediction for each sample, computed in double.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"

namespace dt {
namespace {

// log(1 + e^x) - x z without overflow: max(x, 0) - x z + log(1 + e^-|x|).
struct Bce {
  double pos_weight;
  explicit Bce(const CudaCall& call) : pos_weight(FloatAttr(call, "pos_weight", 1)) {}
  __device__ double Loss(double x, double z) const {
    return WeightOf(z) * ((x > 0 ? x : 0) - x * z + log1p(exp(-fabs(x))));
  }
  __device__ double Slope(double x, double z) const {
    return WeightOf(z) * (1 / (1 + exp(-x)) - z);
  }
  __device__ double WeightOf(double z) const { return 1 + (pos_weight - 1) * z; }
};
struct Mse {
  explicit Mse(const CudaCall&) {}
  __device__ double Loss(double x, double z) const { return (x - z) * (x - z); }
  __device__ double Slope(double x, double z) const { return 2 * (x - z); }
};
// With t = x for label 1 and -x for label 0, q = 1 / (1 + e^-t): a (1 - q)^gamma log(1 + e^-t).
struct Focal {
  double gamma, alpha;
  explicit Focal(const CudaCall& call)
      : gamma(FloatAttr(call, "gamma", 2)), alpha(FloatAttr(call, "alpha", 0.25)) {}
  __device__ double Loss(double x, double z) const {
    const double t = z != 0 ? x : -x;
    return Balance(z) * pow(1 / (1 + exp(t)), gamma) * MinusLog(t);
  }
  __device__ double Slope(double x, double z) const {
    const double t = z != 0 ? x : -x;
    const double q = 1 / (1 + exp(-t)), rest = 1 / (1 + exp(t));
    const double slope = -pow(rest, gamma) * (gamma * q * MinusLog(t) + rest);
    return Balance(z) * (z != 0 ? slope : -slope);
  }
  __device__ double Balance(double z) const { return z != 0 ? alpha : 1 - alpha; }
  __device__ static double MinusLog(double t) { return (t < 0 ? -t : 0) + log1p(exp(-fabs(t))); }
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
  LossFunction function;
  __device__ double operator()(int64_t i, const CudaRun&) const {
    const double x = ToFloat(samples.x[i]), z = ToFloat(samples.label[i]);
    return samples.WeightOf(i) * function.Loss(x, z);
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
                LossOf<T, LossFunction>{Samples<T>(call, 0), LossFunction(call)},
                StoreMean<T>{DataOf<T>(call.outputs[0])});
  });
}

template <class T, class LossFunction>
struct SlopeOf {
  Samples<T> samples;
  LossFunction function;
  const T* dloss;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const double share = static_cast<double>(ToFloat(dloss[0])) / run.step_samples;
    const double slope = function.Slope(ToFloat(samples.x[i]), ToFloat(samples.label[i]));
    out[i] = To<T>(static_cast<float>(share * samples.WeightOf(i) * slope));
  }
};
template <class LossFunction>
CudaError LossGrad(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(call.inputs[1]),
            SlopeOf<T, LossFunction>{Samples<T>(call, 1), LossFunction(call),
                                     DataOf<T>(call.inputs[0]), DataOf<T>(call.outputs[0])});
  });
}

constexpr CudaKernel kKernels[] = {
    {"bce_with_logits", Loss<Bce>, LossScratch},
    {"bce_with_logits_grad", LossGrad<Bce>},
    {"focal_with_logits", Loss<Focal>, LossScratch},
    {"focal_with_logits_grad", LossGrad<Focal>},
    {"mse", Loss<Mse>, LossScratch},
    {"mse_grad", LossGrad<Mse>},
};

}  // namespace

CudaKernelList LossCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
