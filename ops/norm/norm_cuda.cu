// Normalisation of single rows: layer norm and l2_normalize.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"

namespace dt {
namespace {

// ------------------------------------------------------------------ layer norm

// Mean and 1 / √(variance + epsilon) of a row, computed by a warp.
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

// With x̂ the normalised x and g = γ dy: dx = inv_std (g - mean(g) - x̂ mean(g x̂)), with means
// over the row. The row's statistics are kept for dγ = Σ dy x̂.
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
// The first `cols` columns are dγ, the others dβ.
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

// dx = (dy - y (y · dy)) / |x|, or dy / epsilon if the row was divided by epsilon.
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
    {"layer_norm", LayerNorm},
    {"layer_norm_grad", LayerNormGrad, LayerNormGradScratch},
    {"l2_normalize", L2Normalize},
    {"l2_normalize_grad", L2NormalizeGrad},
};

}  // namespace

CudaKernelList NormCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
