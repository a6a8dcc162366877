// PReLU and Dice: a trained slope for each column, or one for all.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"

namespace dt {
namespace {

__device__ float Gate(float normal) { return 1.0f / (1.0f + expf(-normal)); }

// The alpha of column c is alpha[c * step].
template <class T>
struct Slopes {
  const T* alpha;
  int64_t step;
  explicit Slopes(const CudaTensor& t) : alpha(DataOf<T>(t)), step(SizeOf(t).is_one() ? 0 : 1) {}
  __device__ float operator[](int64_t c) const { return ToFloat(alpha[c * step]); }
};

template <class T>
struct Prelu {
  Count cols;
  Slopes<T> alpha;
  const T* x;
  T* y;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const float value = ToFloat(x[i]);
    y[i] = To<T>(value > 0.0f ? value : alpha[Divide(i, cols.At(run)).rest] * value);
  }
};
template <class T>
struct PreluGrad {
  Count cols;
  Slopes<T> alpha;
  const T *x, *dy;
  T* dx;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const float grad = ToFloat(dy[i]);
    dx[i] = To<T>(ToFloat(x[i]) > 0.0f ? grad : alpha[Divide(i, cols.At(run)).rest] * grad);
  }
};
// The dalpha of a column is a sum over rows.
template <class T>
struct PreluSlopeGrad {
  Count cols;
  const T *x, *dy;
  __device__ auto On(int64_t c, const CudaRun& run) const {
    return [x = x, dy = dy, c, width = cols.At(run)](int64_t r) {
      const float value = ToFloat(x[r * width + c]);
      return value > 0.0f ? 0.0f : value * ToFloat(dy[r * width + c]);
    };
  }
};

template <class T>
struct Dice {
  Count cols;
  Slopes<T> alpha;
  const T *x, *normal;
  T* y;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const float slope = alpha[Divide(i, cols.At(run)).rest];
    y[i] = To<T>(ToFloat(x[i]) * (slope + (1.0f - slope) * Gate(ToFloat(normal[i]))));
  }
};
// With p the gate: dx = dy (alpha + (1 - alpha) p), dnormal = dy x (1 - alpha) p (1 - p),
// dalpha = Σ dy x (1 - p).
template <class T>
struct DiceGrad {
  Count cols;
  Slopes<T> alpha;
  const T *x, *normal, *dy;
  T *dx, *dnormal;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const float slope = alpha[Divide(i, cols.At(run)).rest], keep = 1.0f - slope;
    const float p = Gate(ToFloat(normal[i])), grad = ToFloat(dy[i]);
    dx[i] = To<T>(grad * (slope + keep * p));
    dnormal[i] = To<T>(grad * ToFloat(x[i]) * keep * p * (1.0f - p));
  }
};
template <class T>
struct DiceSlopeGrad {
  Count cols;
  const T *x, *normal, *dy;
  __device__ auto On(int64_t c, const CudaRun& run) const {
    return [f = *this, c, width = cols.At(run)](int64_t r) {
      const int64_t i = r * width + c;
      return ToFloat(f.dy[i]) * ToFloat(f.x[i]) * (1.0f - Gate(ToFloat(f.normal[i])));
    };
  }
};

// Stores a column's sum: as alpha's gradient, or as a term of it if there is only one alpha.
template <class T>
struct StoreSlope {
  T* out;  // nullptr: store to `columns`.
  double* columns;
  __device__ void operator()(int64_t c, double sum, const CudaRun&) const {
    if (out != nullptr) {
      out[c] = To<T>(static_cast<float>(sum));
    } else {
      columns[c] = sum;
    }
  }
};
struct Column {
  const double* columns;
  __device__ double operator()(int64_t c, const CudaRun&) const { return columns[c]; }
};
template <class T>
struct StoreTotal {
  T* out;
  __device__ void operator()(double sum, const CudaRun&) const {
    out[0] = To<T>(static_cast<float>(sum));
  }
};

size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Partial sums, then column sums, then partial sums of those.
size_t SlopeScratch(const CudaCall& call) {
  const Count rows = RowsOf(call.inputs[0]), cols = ColsOf(call.inputs[0]);
  return Aligned(SumRowsBytes(rows, cols)) +
         Aligned(static_cast<size_t>(cols.extent) * sizeof(double)) + SumElementsBytes(cols);
}

template <class T, class F>
void SumSlopes(const CudaCall& call, const F& f, const CudaTensor& dalpha) {
  const Count rows = RowsOf(call.inputs[0]), cols = ColsOf(call.inputs[0]);
  auto* const parts = static_cast<char*>(call.scratch);
  auto* const columns = reinterpret_cast<double*>(parts + Aligned(SumRowsBytes(rows, cols)));
  const bool single = SizeOf(dalpha).is_one() && !cols.is_one();
  const StoreSlope<T> store{single ? nullptr : DataOf<T>(dalpha), columns};
  SumRows(call, {rows, cols, reinterpret_cast<float*>(parts)}, f, store);
  if (!single) return;
  double* const totals =
      columns + Aligned(static_cast<size_t>(cols.extent) * sizeof(double)) / sizeof(double);
  SumElements(call, cols, totals, Column{columns}, StoreTotal<T>{DataOf<T>(dalpha)});
}

CudaError RunPrelu(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &y = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(x),
            Prelu<T>{ColsOf(x), Slopes<T>(call.inputs[1]), DataOf<T>(x), DataOf<T>(y)});
  });
}

CudaError RunPreluGrad(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &dy = call.inputs[2];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(x),
            PreluGrad<T>{ColsOf(x), Slopes<T>(call.inputs[1]), DataOf<T>(x), DataOf<T>(dy),
                         DataOf<T>(call.outputs[0])});
    SumSlopes<T>(call, PreluSlopeGrad<T>{ColsOf(x), DataOf<T>(x), DataOf<T>(dy)}, call.outputs[1]);
  });
}

CudaError RunDice(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &normal = call.inputs[1];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(x),
            Dice<T>{ColsOf(x), Slopes<T>(call.inputs[2]), DataOf<T>(x), DataOf<T>(normal),
                    DataOf<T>(call.outputs[0])});
  });
}

CudaError RunDiceGrad(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &normal = call.inputs[1], &dy = call.inputs[3];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(x),
            DiceGrad<T>{ColsOf(x), Slopes<T>(call.inputs[2]), DataOf<T>(x), DataOf<T>(normal),
                        DataOf<T>(dy), DataOf<T>(call.outputs[0]), DataOf<T>(call.outputs[1])});
    const DiceSlopeGrad<T> slopes{ColsOf(x), DataOf<T>(x), DataOf<T>(normal), DataOf<T>(dy)};
    SumSlopes<T>(call, slopes, call.outputs[2]);
  });
}

constexpr CudaKernel kKernels[] = {
    {"prelu", RunPrelu},
    {"dice", RunDice},
    {"prelu_grad", RunPreluGrad, SlopeScratch},
    {"dice_grad", RunDiceGrad, SlopeScratch},
};

}  // namespace

CudaKernelList GatedCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
