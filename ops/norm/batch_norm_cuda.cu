// Batch norm: statistics over the rows of a slice, and the running values of a step.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"
#include "ops/norm/dropout_cuda.cuh"

namespace dt {
namespace {

__device__ double ShareOf(int64_t rows) {
  return rows == 0 ? 0.0 : 1.0 / static_cast<double>(rows);
}

// Outputs 1 to 3 of the node.
template <class T>
struct Statistics {
  T *mean, *var, *inv_std;
  explicit Statistics(const CudaCall& call)
      : mean(DataOf<T>(call.outputs[1])),
        var(DataOf<T>(call.outputs[2])),
        inv_std(DataOf<T>(call.outputs[3])) {}
};

// Evaluation uses the running values and sums zeros. Only the card knows whether it is evaluation.
template <class T>
struct MeanOf {
  Count cols;
  const T* x;
  __device__ auto On(int64_t c, const CudaRun& run) const {
    return [x = x + c, width = run.training != 0 ? cols.At(run) : int64_t{-1}](int64_t r) {
      return width < 0 ? 0.0f : ToFloat(x[r * width]);
    };
  }
};
template <class T>
struct StoreMean {
  Count rows;
  const T* running;
  T* mean;
  __device__ void operator()(int64_t c, double sum, const CudaRun& run) const {
    const auto own = static_cast<float>(sum * ShareOf(rows.At(run)));
    mean[c] = run.training != 0 ? To<T>(own) : running[c];
  }
};
template <class T>
struct SquaresOf {
  Count cols;
  const T *x, *mean;
  __device__ auto On(int64_t c, const CudaRun& run) const {
    const int64_t width = run.training != 0 ? cols.At(run) : -1;
    return [x = x + c, width, middle = ToFloat(mean[c])](int64_t r) {
      if (width < 0) return 0.0f;
      const float away = ToFloat(x[r * width]) - middle;
      return away * away;
    };
  }
};
template <class T>
struct StoreVar {
  Count rows;
  float epsilon;
  const T* running;
  Statistics<T> to;
  T* samples;
  __device__ void operator()(int64_t c, double sum, const CudaRun& run) const {
    const auto own = static_cast<float>(sum * ShareOf(rows.At(run)));
    const float var = run.training != 0 ? own : ToFloat(running[c]);
    to.var[c] = To<T>(var);
    to.inv_std[c] = To<T>(1.0f / sqrtf(var + epsilon));
    if (c == 0) samples[0] = To<T>(run.training != 0 ? static_cast<float>(rows.At(run)) : 0.0f);
  }
};
template <class T>
struct Normalise {
  Count cols;
  const T *x, *gamma, *beta;
  Statistics<T> by;
  bool relu;
  T* y;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t c = Divide(i, cols.At(run)).rest;
    const float normal = (ToFloat(x[i]) - ToFloat(by.mean[c])) * ToFloat(by.inv_std[c]);
    const float moved = normal * ToFloat(gamma[c]) + ToFloat(beta[c]);
    y[i] = To<T>(relu && !(moved > 0.0f) ? 0.0f : moved);
  }
};

// Memory for both sums of the gradient.
size_t SumsBytes(const CudaCall& call) {
  return SumRowsBytes(RowsOf(call.inputs[0]), Fixed(2) * ColsOf(call.inputs[0]));
}

CudaError NormaliseBatch(const CudaCall& call, bool relu) {
  const CudaTensor& x = call.inputs[0];
  const Count rows = RowsOf(x), cols = ColsOf(x);
  const auto epsilon = static_cast<float>(FloatAttr(call, "epsilon", 1e-5));
  auto* const parts = static_cast<float*>(call.scratch);
  return OnFloat(call, [&]<class T>(T) {
    const Statistics<T> by(call);
    SumRows(call, {rows, cols, parts}, MeanOf<T>{cols, DataOf<T>(x)},
            StoreMean<T>{rows, DataOf<T>(call.inputs[3]), by.mean});
    SumRows(call, {rows, cols, parts}, SquaresOf<T>{cols, DataOf<T>(x), by.mean},
            StoreVar<T>{rows, epsilon, DataOf<T>(call.inputs[4]), by, DataOf<T>(call.outputs[4])});
    ForEach(call, SizeOf(x),
            Normalise<T>{cols, DataOf<T>(x), DataOf<T>(call.inputs[1]), DataOf<T>(call.inputs[2]),
                         by, relu, DataOf<T>(call.outputs[0])});
  });
}
CudaError BatchNorm(const CudaCall& call) { return NormaliseBatch(call, false); }

CudaError NormLayer(const CudaCall& call) {
  const CudaAttr* const node = FindAttr(call, "node");
  const CudaTensor& y = call.outputs[0];
  const double rate = FloatAttr(call, "dropout", 0);
  const Count cols = ColsOf(y);
  if (node == nullptr) return "norm_layer: the call does not name its node";
  if (cols.symbols[0] != 0) return "norm_layer: the number of channels varies";
  if (CudaError e = NormaliseBatch(call, true)) return e;
  if (rate == 0) return nullptr;
  const int64_t blocks = DropBlocks(cols.times);
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, RowsOf(y) * Fixed(blocks),
            Drop<T>{call.first_sample, cols.times, blocks, static_cast<uint64_t>(node->number),
                    static_cast<uint32_t>(rate * 0x1.0p32), static_cast<float>(1 / (1 - rate)),
                    DataOf<T>(y), DataOf<T>(y)});
  });
}

// With x̂ the normalised x and n the number of samples: dβ = Σ dy, dγ = Σ dy x̂,
// dx = γ inv_std (dy - dβ / n - x̂ dγ / n).
template <class T>
struct NormGrads {
  Count rows, cols;
  const T *dy, *x, *gamma, *mean, *inv_std;
  T *dx, *dgamma, *dbeta;
  const T* y;   // The output of norm_layer; nullptr for batch_norm.
  float scale;  // With y, of gradients where it is above 0; others are 0.
};
template <class T>
struct GradientsOf {
  const T *dy, *y;
  float scale;
  __device__ float At(int64_t i) const {
    const float grad = ToFloat(dy[i]);
    if (y == nullptr) return grad;
    return ToFloat(y[i]) > 0.0f ? grad * scale : 0.0f;
  }
};
// The first `cols` columns are dγ, the others dβ.
template <class T>
struct ScaleAndShift : NormGrads<T> {
  __device__ auto On(int64_t c, const CudaRun& run) const {
    const int64_t width = this->cols.At(run);
    const bool shift = c >= width;
    const int64_t at = shift ? c - width : c;
    const GradientsOf<T> grads{this->dy, this->y, this->scale};
    return [grads, at, x = this->x + at, width, shift, middle = ToFloat(this->mean[at]),
            factor = ToFloat(this->inv_std[at])](int64_t r) {
      const float grad = grads.At(r * width + at);
      return shift ? grad : grad * (ToFloat(x[r * width]) - middle) * factor;
    };
  }
  __device__ void operator()(int64_t c, double sum, const CudaRun& run) const {
    const int64_t width = this->cols.At(run);
    T* const to = c >= width ? this->dbeta + (c - width) : this->dgamma + c;
    *to = To<T>(static_cast<float>(sum));
  }
};
template <class T>
struct InputGrad : NormGrads<T> {
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t c = Divide(i, this->cols.At(run)).rest;
    const auto share = static_cast<float>(ShareOf(this->rows.At(run)));
    const float factor = ToFloat(this->inv_std[c]);
    const float normal = (ToFloat(this->x[i]) - ToFloat(this->mean[c])) * factor;
    const float common = ToFloat(this->dbeta[c]) + normal * ToFloat(this->dgamma[c]);
    const float grad = GradientsOf<T>{this->dy, this->y, this->scale}.At(i);
    this->dx[i] = To<T>(ToFloat(this->gamma[c]) * factor * (grad - common * share));
  }
};

CudaError NormGradients(const CudaCall& call, const CudaTensor* y) {
  const CudaTensor& dy = call.inputs[0];
  const double kept = 1 - FloatAttr(call, "dropout", 0);
  const Count rows = RowsOf(dy), cols = ColsOf(dy);
  return OnFloat(call, [&]<class T>(T) {
    const NormGrads<T> all{rows,
                           cols,
                           DataOf<T>(dy),
                           DataOf<T>(call.inputs[1]),
                           DataOf<T>(call.inputs[2]),
                           DataOf<T>(call.inputs[3]),
                           DataOf<T>(call.inputs[4]),
                           DataOf<T>(call.outputs[0]),
                           DataOf<T>(call.outputs[1]),
                           DataOf<T>(call.outputs[2]),
                           y == nullptr ? nullptr : DataOf<T>(*y),
                           static_cast<float>(1 / kept)};
    const ScaleAndShift<T> sums{all};
    SumRows(call, {rows, Fixed(2) * cols, static_cast<float*>(call.scratch)}, sums, sums);
    ForEach(call, SizeOf(dy), InputGrad<T>{all});
  });
}
CudaError BatchNormGrad(const CudaCall& call) { return NormGradients(call, nullptr); }

CudaError NormLayerBack(const CudaCall& call) {
  if (CudaError e = NormGradients(call, &call.inputs[5])) return e;
  const CudaTensor& dx = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    SumRows(call, {RowsOf(dx), ColsOf(dx), static_cast<float*>(call.scratch)},
            ColumnOf<T>{ColsOf(dx), DataOf<T>(dx)}, StoreColumn<T>{DataOf<T>(call.outputs[3])});
  });
}

// Merges the statistics of one channel, slice by slice.
template <class T>
struct Fold {
  Count slices, cols, counted;  // counted: 1, or one for each channel, all equal.
  float fresh, old;
  T *mean, *var;
  const T *means, *vars, *counts;
  __device__ void operator()(int64_t c, const CudaRun& run) const {
    const int64_t width = cols.At(run), many = slices.At(run);
    float m = ToFloat(mean[c]), v = ToFloat(var[c]);
    for (int64_t k = 0; k < many; ++k) {
      const float samples = ToFloat(counts[k * counted.At(run)]);
      if (samples == 0.0f) continue;
      const float unbiased = samples > 1.0f ? samples / (samples - 1.0f) : 1.0f;
      m = old * m + fresh * ToFloat(means[k * width + c]);
      v = old * v + fresh * unbiased * ToFloat(vars[k * width + c]);
    }
    mean[c] = To<T>(m);
    var[c] = To<T>(v);
  }
};
CudaError BatchNormRunning(const CudaCall& call) {
  const double momentum = FloatAttr(call, "momentum", 0.1);
  const CudaTensor& means = call.inputs[2];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, ColsOf(means),
            Fold<T>{RowsOf(means), ColsOf(means), ColsOf(call.inputs[4]),
                    static_cast<float>(momentum), static_cast<float>(1 - momentum),
                    DataOf<T>(call.inputs[0]), DataOf<T>(call.inputs[1]), DataOf<T>(means),
                    DataOf<T>(call.inputs[3]), DataOf<T>(call.inputs[4])});
  });
}

template <class T>
struct Choose {
  const T *in_training, *in_evaluation;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    out[i] = run.training ? in_training[i] : in_evaluation[i];
  }
};
CudaError InTraining(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(call.outputs[0]),
            Choose<T>{DataOf<T>(call.inputs[0]), DataOf<T>(call.inputs[1]),
                      DataOf<T>(call.outputs[0])});
  });
}

template <class T>
struct CopyStatistics {
  const T *mean, *var, *deviation, *counts;
  T *to_mean, *to_var, *inv_std, *count;
  __device__ void operator()(int64_t c, const CudaRun& run) const {
    to_mean[c] = mean[c];
    to_var[c] = var[c];
    inv_std[c] = To<T>(1.0f / ToFloat(deviation[c]));
    count[c] = run.training ? counts[c] : To<T>(0.0f);
  }
};
CudaError BatchNormStatistics(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    const auto in = [&](int i) { return DataOf<T>(call.inputs[i]); };
    const auto out = [&](int i) { return DataOf<T>(call.outputs[i]); };
    ForEach(call, SizeOf(call.inputs[0]),
            CopyStatistics<T>{in(2), in(3), in(4), in(5), out(0), out(1), out(2), out(3)});
  });
}

constexpr CudaKernel kKernels[] = {
    {"batch_norm", BatchNorm, SumsBytes},
    {"batch_norm_grad", BatchNormGrad, SumsBytes},
    {"norm_layer", NormLayer, SumsBytes},
    {"norm_layer_back", NormLayerBack, SumsBytes},
    {"batch_norm_running", BatchNormRunning},
    {"batch_norm_statistics", BatchNormStatistics},
    {"in_training", InTraining},
};

}  // namespace

CudaKernelList BatchNormCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
