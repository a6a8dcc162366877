// Softmax over rows, with and without a mask; splitting and merging the heads of attention.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/strided.cuh"

namespace dt {
namespace {

// ------------------------------------------------------------------ softmax

template <class T>
struct SoftmaxRow {
  Count cols;
  float scale;
  const T* x;
  T* y;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = cols.At(run);
    const T* const from = x + r * n;
    float top = -INFINITY, sum = 0;
    for (int64_t c = lane; c < n; c += kWarp) top = fmaxf(top, ToFloat(from[c]));
    top = WarpMax(top);
    for (int64_t c = lane; c < n; c += kWarp) sum += expf((ToFloat(from[c]) - top) * scale);
    const float share = 1.0f / WarpSum(sum);
    for (int64_t c = lane; c < n; c += kWarp) {
      y[r * n + c] = To<T>(expf((ToFloat(from[c]) - top) * scale) * share);
    }
  }
};
float ScaleOf(const CudaCall& call) { return static_cast<float>(FloatAttr(call, "scale", 1)); }

CudaError Softmax(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &y = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, RowsOf(x), SoftmaxRow<T>{ColsOf(x), ScaleOf(call), DataOf<T>(x), DataOf<T>(y)});
  });
}

// Where the mask for a row begins, and whether it advances within the row, if the mask is broadcast
// to the shape of x.
struct MaskRows {
  int rank;
  Count dims[kCudaRankMax], steps[kCudaRankMax];  // All dimensions but the last, innermost first.
  int64_t step;

  MaskRows(const CudaTensor& x, const CudaTensor& mask) : rank(x.rank - 1), step(0) {
    for (int i = 0; i < x.rank; ++i) {
      const int own = i - (x.rank - mask.rank);
      const Count by = own < 0 ? Fixed(0) : StepOf(mask, own);
      if (i + 1 == x.rank) {
        step = by.times;
      } else {
        dims[x.rank - 2 - i] = DimOf(x, i);
        steps[x.rank - 2 - i] = by;
      }
    }
  }
  __device__ int64_t OffsetOf(int64_t row, const CudaRun& run) const {
    int64_t offset = 0;
    for (int d = 0; d < rank; ++d) {
      const Division part = Divide(row, dims[d].At(run));
      offset += part.rest * steps[d].At(run);
      row = part.quotient;
    }
    return offset;
  }
};

// A row in which the mask keeps no element becomes zeros.
template <class T>
struct MaskedRow {
  Count cols;
  float scale;
  MaskRows masks;
  const T *x, *mask;
  T* y;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = cols.At(run), step = masks.step;
    const T *const from = x + r * n, *const keep = mask + masks.OffsetOf(r, run);
    float top = -INFINITY, kept = 0, sum = 0;
    for (int64_t c = lane; c < n; c += kWarp) {
      if (ToFloat(keep[c * step]) == 0.0f) continue;
      top = fmaxf(top, ToFloat(from[c]));
      kept = 1;
    }
    top = WarpMax(top);
    kept = WarpMax(kept);
    for (int64_t c = lane; c < n; c += kWarp) {
      if (ToFloat(keep[c * step]) != 0.0f) sum += expf((ToFloat(from[c]) - top) * scale);
    }
    const float total = WarpSum(sum), share = kept == 0.0f ? 0.0f : 1.0f / total;
    for (int64_t c = lane; c < n; c += kWarp) {
      const bool is_kept = kept != 0.0f && ToFloat(keep[c * step]) != 0.0f;
      y[r * n + c] = To<T>(is_kept ? expf((ToFloat(from[c]) - top) * scale) * share : 0.0f);
    }
  }
};
CudaError MaskedSoftmax(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &mask = call.inputs[1];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, RowsOf(x),
            MaskedRow<T>{ColsOf(x), ScaleOf(call), MaskRows(x, mask), DataOf<T>(x), DataOf<T>(mask),
                         DataOf<T>(call.outputs[0])});
  });
}

// dx = s y (dy - Σ dy y)
template <class T>
struct SoftmaxRowGrad {
  Count cols;
  float scale;
  const T *y, *dy;
  T* dx;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = cols.At(run);
    const T *const own = y + r * n, *const grad = dy + r * n;
    float sum = 0;
    for (int64_t c = lane; c < n; c += kWarp) sum += ToFloat(own[c]) * ToFloat(grad[c]);
    const float mean = WarpSum(sum);
    for (int64_t c = lane; c < n; c += kWarp) {
      dx[r * n + c] = To<T>(scale * ToFloat(own[c]) * (ToFloat(grad[c]) - mean));
    }
  }
};
CudaError SoftmaxGrad(const CudaCall& call) {
  const CudaTensor& y = call.inputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, RowsOf(y),
            SoftmaxRowGrad<T>{ColsOf(y), ScaleOf(call), DataOf<T>(y), DataOf<T>(call.inputs[1]),
                              DataOf<T>(call.outputs[0])});
  });
}

// ------------------------------------------------------------------ heads

template <class T>
struct CopyAt {
  const T* from;
  T* to;
  __device__ void operator()(int64_t i, const int64_t (&at)[1]) const { to[i] = from[at[0]]; }
};

// From [B, F, H, d] to [B, H, F, d]: exchanges the second and third dimensions of the input.
CudaError SplitHeads(const CudaCall& call) {
  const CudaTensor &in = call.inputs[0], &out = call.outputs[0];  // [B, F, H d], [B, H, F, d]
  const Count width = DimOf(in, 2), dim = DimOf(out, 3);
  Strided<1> loop;
  loop.Add(dim, {Fixed(1)});
  loop.Add(DimOf(in, 1), {width});
  loop.Add(DimOf(out, 1), {dim});
  loop.Add(DimOf(in, 0), {DimOf(in, 1) * width});
  return OnFloat(call, [&]<class T>(T) {
    ForStrided(call, SizeOf(out), loop, CopyAt<T>{DataOf<T>(in), DataOf<T>(out)});
  });
}

CudaError MergeHeads(const CudaCall& call) {
  const CudaTensor &in = call.inputs[0], &out = call.outputs[0];  // [B, H, F, d], [B, F, H d]
  const Count dim = DimOf(in, 3);
  Strided<1> loop;
  loop.Add(dim, {Fixed(1)});
  loop.Add(DimOf(in, 1), {DimOf(in, 2) * dim});
  loop.Add(DimOf(in, 2), {dim});
  loop.Add(DimOf(in, 0), {Product(in, 1, 4)});
  return OnFloat(call, [&]<class T>(T) {
    ForStrided(call, SizeOf(out), loop, CopyAt<T>{DataOf<T>(in), DataOf<T>(out)});
  });
}

constexpr CudaKernel kKernels[] = {
    {"softmax", Softmax},        {"masked_softmax", MaskedSoftmax}, {"softmax_grad", SoftmaxGrad},
    {"split_heads", SplitHeads}, {"merge_heads", MergeHeads},
};

}  // namespace

CudaKernelList AttentionCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
