// Batch norm, layer norm, l2_normalize.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"

namespace dt {
namespace {

__device__ double ShareOf(int64_t rows) {
  return rows == 0 ? 0.0 : 1.0 / static_cast<double>(rows);
}

// ------------------------------------------------------------------ batch norm

// Outputs 1 to 3.
template <class T>
struct Statistics {
  T *mean, *var, *inv_std;
  explicit Statistics(const CudaCall& call)
      : mean(DataOf<T>(call.outputs[1])),
        var(DataOf<T>(call.outputs[2])),
        inv_std(DataOf<T>(call.outputs[3])) {}
};

// Evaluation takes the running values; which it is, the card knows. Then nothing is added up.
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
  T* y;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t c = Divide(i, cols.At(run)).rest;
    const float normal = (ToFloat(x[i]) - ToFloat(by.mean[c])) * ToFloat(by.inv_std[c]);
    y[i] = To<T>(normal * ToFloat(gamma[c]) + ToFloat(beta[c]));
  }
};

// Enough for both sums of the gradient.
size_t SumsBytes(const CudaCall& call) {
  return SumRowsBytes(RowsOf(call.inputs[0]), Fixed(2) * ColsOf(call.inputs[0]));
}

CudaError BatchNorm(const CudaCall& call) {
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
                         by, DataOf<T>(call.outputs[0])});
  });
}

// With x̂ the normalised x and n the samples: dβ = Σ dy, dγ = Σ dy x̂,
// dx = γ inv_std (dy - dβ / n - x̂ dγ / n).
template <class T>
struct NormGrads {
  Count rows, cols;
  const T *dy, *x, *gamma, *mean, *inv_std;
  T *dx, *dgamma, *dbeta;
};
// The first `cols` columns give dγ, the others dβ.
template <class T>
struct ScaleAndShift : NormGrads<T> {
  __device__ auto On(int64_t c, const CudaRun& run) const {
    const int64_t width = this->cols.At(run);
    const bool shift = c >= width;
    const int64_t at = shift ? c - width : c;
    return [dy = this->dy + at, x = this->x + at, width, shift, middle = ToFloat(this->mean[at]),
            factor = ToFloat(this->inv_std[at])](int64_t r) {
      const float grad = ToFloat(dy[r * width]);
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
    this->dx[i] = To<T>(ToFloat(this->gamma[c]) * factor * (ToFloat(this->dy[i]) - common * share));
  }
};

CudaError BatchNormGrad(const CudaCall& call) {
  const CudaTensor& dy = call.inputs[0];
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
                           DataOf<T>(call.outputs[2])};
    const ScaleAndShift<T> sums{all};
    SumRows(call, {rows, Fixed(2) * cols, static_cast<float*>(call.scratch)}, sums, sums);
    ForEach(call, SizeOf(dy), InputGrad<T>{all});
  });
}

// Of one channel, over the slices in order.
template <class T>
struct Fold {
  Count slices, cols;
  float fresh, old;
  T *mean, *var;
  const T *means, *vars, *counts;
  __device__ void operator()(int64_t c, const CudaRun& run) const {
    const int64_t width = cols.At(run), many = slices.At(run);
    float m = ToFloat(mean[c]), v = ToFloat(var[c]);
    for (int64_t k = 0; k < many; ++k) {
      const float samples = ToFloat(counts[k]);
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
            Fold<T>{RowsOf(means), ColsOf(means), static_cast<float>(momentum),
                    static_cast<float>(1 - momentum), DataOf<T>(call.inputs[0]),
                    DataOf<T>(call.inputs[1]), DataOf<T>(means), DataOf<T>(call.inputs[3]),
                    DataOf<T>(call.inputs[4])});
  });
}

// ------------------------------------------------------------------ layer norm

// Mean and 1 / √(variance + epsilon) of a row, by a warp.
struct RowStatistics {
  float mean, inv_std;
};
template <class T>
__device__ RowStatistics Measure(const T* x, int64_t n, int lane, float epsilon) {
  const float share = 1.0f / static_cast<float>(n);
  float sum = 0, squares = 0;
  for (int64_t c = lane; c < n; c += kWarp) sum += ToFloat(x[c]);
  const float mean = WarpSum(sum) * share;
  for (int64_t c = lane; c < n; c += kWarp) {
    squares += (ToFloat(x[c]) - mean) * (ToFloat(x[c]) - mean);
  }
  return {mean, 1.0f / sqrtf(WarpSum(squares) * share + epsilon)};
}

template <class T>
struct NormRow {
  Count cols;
  float epsilon;
  const T *x, *gamma, *beta;
  T* y;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = cols.At(run);
    const T* const from = x + r * n;
    const RowStatistics by = Measure(from, n, lane, epsilon);
    for (int64_t c = lane; c < n; c += kWarp) {
      const float normal = (ToFloat(from[c]) - by.mean) * by.inv_std;
      y[r * n + c] = To<T>(normal * ToFloat(gamma[c]) + ToFloat(beta[c]));
    }
  }
};

float EpsilonOf(const CudaCall& call, double fallback) {
  return static_cast<float>(FloatAttr(call, "epsilon", fallback));
}

CudaError LayerNorm(const CudaCall& call) {
  const CudaTensor& x = call.inputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, RowsOf(x),
            NormRow<T>{ColsOf(x), EpsilonOf(call, 1e-5), DataOf<T>(x), DataOf<T>(call.inputs[1]),
                       DataOf<T>(call.inputs[2]), DataOf<T>(call.outputs[0])});
  });
}

// With x̂ the normalised x and g = γ dy: dx = inv_std (g - mean(g) - x̂ mean(g x̂)), means over the
// row, whose statistics are kept for dγ = Σ dy x̂.
template <class T>
struct NormRowGrad {
  Count cols;
  float epsilon;
  const T *x, *gamma, *dy;
  T* dx;
  RowStatistics* kept;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = cols.At(run);
    const T *const from = x + r * n, *const grad = dy + r * n;
    const RowStatistics by = Measure(from, n, lane, epsilon);
    if (lane == 0) kept[r] = by;
    float sum = 0, product = 0;
    for (int64_t c = lane; c < n; c += kWarp) {
      const float g = ToFloat(grad[c]) * ToFloat(gamma[c]);
      sum += g;
      product += g * (ToFloat(from[c]) - by.mean) * by.inv_std;
    }
    const float share = 1.0f / static_cast<float>(n);
    const float of_g = WarpSum(sum) * share, of_product = WarpSum(product) * share;
    for (int64_t c = lane; c < n; c += kWarp) {
      const float g = ToFloat(grad[c]) * ToFloat(gamma[c]);
      const float normal = (ToFloat(from[c]) - by.mean) * by.inv_std;
      dx[r * n + c] = To<T>(by.inv_std * (g - of_g - normal * of_product));
    }
  }
};
// The first `cols` columns give dγ, the others dβ.
template <class T>
struct ScaleAndShiftRows {
  Count cols;
  const T *x, *dy;
  const RowStatistics* kept;
  T *dgamma, *dbeta;
  __device__ auto On(int64_t c, const CudaRun& run) const {
    const int64_t n = cols.At(run);
    const bool shift = c >= n;
    const int64_t at = shift ? c - n : c;
    return [x = x + at, dy = dy + at, kept = kept, n, shift](int64_t r) {
      const float grad = ToFloat(dy[r * n]);
      return shift ? grad : grad * (ToFloat(x[r * n]) - kept[r].mean) * kept[r].inv_std;
    };
  }
  __device__ void operator()(int64_t c, double sum, const CudaRun& run) const {
    const int64_t n = cols.At(run);
    *(c >= n ? dbeta + (c - n) : dgamma + c) = To<T>(static_cast<float>(sum));
  }
};

size_t LayerNormGradScratch(const CudaCall& call) {
  const Count rows = RowsOf(call.inputs[0]);
  return static_cast<size_t>(rows.extent) * sizeof(RowStatistics) +
         SumRowsBytes(rows, Fixed(2) * ColsOf(call.inputs[0]));
}

CudaError LayerNormGrad(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &dy = call.inputs[2];
  const Count rows = RowsOf(x), cols = ColsOf(x);
  auto* const kept = static_cast<RowStatistics*>(call.scratch);
  auto* const parts = reinterpret_cast<float*>(kept + rows.extent);
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, rows,
            NormRowGrad<T>{cols, EpsilonOf(call, 1e-5), DataOf<T>(x), DataOf<T>(call.inputs[1]),
                           DataOf<T>(dy), DataOf<T>(call.outputs[0]), kept});
    const ScaleAndShiftRows<T> sums{cols,
                                    DataOf<T>(x),
                                    DataOf<T>(dy),
                                    kept,
                                    DataOf<T>(call.outputs[1]),
                                    DataOf<T>(call.outputs[2])};
    SumRows(call, {rows, Fixed(2) * cols, parts}, sums, sums);
  });
}

// ------------------------------------------------------------------ l2_normalize

template <class T>
__device__ float DotOf(const T* a, const T* b, int64_t n, int lane) {
  float sum = 0;
  for (int64_t c = lane; c < n; c += kWarp) sum += ToFloat(a[c]) * ToFloat(b[c]);
  return WarpSum(sum);
}

template <class T>
struct UnitRow {
  Count cols;
  float least;
  const T* x;
  T* y;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = cols.At(run);
    const T* const from = x + r * n;
    const float length = sqrtf(DotOf(from, from, n, lane));
    const float factor = 1.0f / (length < least ? least : length);
    for (int64_t c = lane; c < n; c += kWarp) y[r * n + c] = To<T>(ToFloat(from[c]) * factor);
  }
};
CudaError L2Normalize(const CudaCall& call) {
  const CudaTensor& x = call.inputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(
        call, RowsOf(x),
        UnitRow<T>{ColsOf(x), EpsilonOf(call, 1e-12), DataOf<T>(x), DataOf<T>(call.outputs[0])});
  });
}

// dx = (dy - y (y · dy)) / |x|; dy / epsilon where the length is not what it was divided by.
template <class T>
struct UnitRowGrad {
  Count cols;
  float least;
  const T *x, *dy;
  T* dx;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = cols.At(run);
    const T *const from = x + r * n, *const grad = dy + r * n;
    const float length = sqrtf(DotOf(from, from, n, lane));
    const bool is_short = length < least;
    const float factor = 1.0f / (is_short ? least : length);
    const float dot = DotOf(from, grad, n, lane);
    const float along = is_short ? 0.0f : dot * factor * factor;
    for (int64_t c = lane; c < n; c += kWarp) {
      dx[r * n + c] = To<T>(factor * (ToFloat(grad[c]) - ToFloat(from[c]) * along));
    }
  }
};
CudaError L2NormalizeGrad(const CudaCall& call) {
  const CudaTensor& x = call.inputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, RowsOf(x),
            UnitRowGrad<T>{ColsOf(x), EpsilonOf(call, 1e-12), DataOf<T>(x),
                           DataOf<T>(call.inputs[1]), DataOf<T>(call.outputs[0])});
  });
}

constexpr CudaKernel kKernels[] = {
    {"batch_norm", BatchNorm, SumsBytes},
    {"batch_norm_grad", BatchNormGrad, SumsBytes},
    {"batch_norm_running", BatchNormRunning},
    {"layer_norm", LayerNorm},
    {"layer_norm_grad", LayerNormGrad, LayerNormGradScratch},
    {"l2_normalize", L2Normalize},
    {"l2_normalize_grad", L2NormalizeGrad},
};

}  // namespace

CudaKernelList NormCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
