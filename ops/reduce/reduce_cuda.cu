// Sums, means and maxima.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/strided.cuh"
#include "ops/cuda/sums.cuh"

namespace dt {
namespace {

// The input's dimensions, divided into kept ones, in the order of the output, and reduced ones.
struct Reduction {
  Strided<1> kept, reduced;
  Count outputs, terms;
  bool rows = false;  // The last dimension is reduced: adjacent elements belong to one sum.

  // is_reduced(i) says whether dimension i of the input is reduced.
  template <class Flag>
  Reduction(const CudaTensor& in, const Flag& is_reduced) {
    for (int i = in.rank - 1; i >= 0; --i) {
      const Count dim = DimOf(in, i), step = Product(in, i + 1, in.rank);
      const bool sums = is_reduced(i);
      (sums ? reduced : kept).Add(dim, {step});
      (sums ? terms : outputs) = (sums ? terms : outputs) * dim;
      if (!dim.is_one() && reduced.rank + kept.rank == 1) rows = sums;
    }
  }
};

// The offset of position i. Most loops have one dimension and need no division.
__device__ int64_t OffsetOf(const Strided<1>& loop, int64_t i, const CudaRun& run) {
  int64_t offset = 0;
  for (int d = 0; d < loop.rank; ++d) {
    const Division part = d + 1 < loop.rank ? Divide(i, loop.dims[d].At(run)) : Division{0, i};
    offset += part.rest * loop.steps[0][d].At(run);
    i = part.quotient;
  }
  return offset;
}

template <class T>
struct Terms {
  Reduction by;
  const T* x;
  __device__ auto On(int64_t c, const CudaRun& run) const {
    const int64_t step = by.reduced.rank == 0 ? 0 : by.reduced.steps[0][0].At(run);
    return [this, &run, step, x = x + OffsetOf(by.kept, c, run)](int64_t r) {
      return ToFloat(x[by.reduced.rank <= 1 ? r * step : OffsetOf(by.reduced, r, run)]);
    };
  }
};
template <class T>
struct StoreScaled {
  float factor;
  T* out;
  __device__ void operator()(int64_t c, double sum, const CudaRun&) const {
    out[c] = To<T>(static_cast<float>(sum) * factor);
  }
};
// One warp for each sum.
template <class T>
struct WarpSums {
  Terms<T> terms;
  StoreScaled<T> store;
  __device__ void operator()(int64_t c, int lane, const CudaRun& run) const {
    const auto value = terms.On(c, run);
    const int64_t count = terms.by.terms.At(run);
    float sum = 0;
    for (int64_t r = lane; r < count; r += kWarp) sum += value(r);
    sum = WarpSum(sum);
    if (lane == 0) store(c, static_cast<double>(sum), run);
  }
};

// Sums of more adjacent elements than this are divided into pieces.
constexpr int64_t kWarpTerms = 8192;

CudaError Reduce(const CudaCall& call, const Reduction& by, double factor) {
  return OnFloat(call, [&]<class T>(T) {
    const Terms<T> terms{by, DataOf<T>(call.inputs[0])};
    const StoreScaled<T> store{static_cast<float>(factor), DataOf<T>(call.outputs[0])};
    if (by.rows && by.terms.extent <= kWarpTerms) {
      ForRows(call, by.outputs, WarpSums<T>{terms, store});
    } else {
      SumRows(call, {by.terms, by.outputs, static_cast<float*>(call.scratch)}, terms, store);
    }
  });
}

// For reduce_sum and reduce_mean: the dimensions named by `axis`.
Reduction OverAxes(const CudaCall& call) {
  const CudaTensor& x = call.inputs[0];
  const CudaAttr* axis = FindAttr(call, "axis");
  uint32_t flags = 0;
  const auto mark = [&](int64_t a) { flags |= 1u << (a < 0 ? a + x.rank : a); };
  if (axis != nullptr && axis->kind == CudaAttr::Kind::kInts) {
    for (size_t i = 0; i < axis->count; ++i) mark(axis->ints[i]);
  } else if (axis != nullptr) {
    mark(axis->number);
  }
  return Reduction(x, [&](int i) { return (flags >> i & 1) != 0; });
}
// For reduce_batch: all dimensions but the last.
Reduction OverRows(const CudaCall& call) {
  const CudaTensor& x = call.inputs[0];
  return Reduction(x, [&](int i) { return i + 1 < x.rank; });
}
// For reduce_to: the dimensions along which the output would be broadcast.
Reduction OverRepeated(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &out = call.outputs[0];
  return Reduction(x, [&](int i) {
    const int own = i - (x.rank - out.rank);
    return own < 0 || (DimOf(out, own).is_one() && !DimOf(x, i).is_one());
  });
}

template <Reduction (*of)(const CudaCall&)>
size_t Scratch(const CudaCall& call) {
  const Reduction by = of(call);
  return SumRowsBytes(by.terms, by.outputs);
}
template <Reduction (*of)(const CudaCall&)>
CudaError Sum(const CudaCall& call) {
  return Reduce(call, of(call), 1);
}
CudaError Mean(const CudaCall& call) {
  const Reduction by = OverAxes(call);  // The reduced dimensions are constant.
  return Reduce(call, by, 1 / static_cast<double>(by.terms.times));
}

template <class T>
struct FillCount {
  Count rows;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    out[i] = To<T>(static_cast<float>(rows.At(run)));
  }
};
CudaError BatchCount(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(call.outputs[0]),
            FillCount<T>{RowsOf(call.inputs[0]), DataOf<T>(call.outputs[0])});
  });
}

// ------------------------------------------------------------------ maxima

// The input as [outer, count, inner]; the middle dimension is reduced.
struct Middle {
  Count outer, count, inner;
  Middle(const CudaTensor& x, int axis)
      : outer(Product(x, 0, axis)), count(DimOf(x, axis)), inner(Product(x, axis + 1, x.rank)) {}
};

// NaN counts as larger than every number, so that it is not hidden.
template <class T>
struct MaxOf {
  Middle shape;
  const T* x;
  T* y;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t inner = shape.inner.At(run), count = shape.count.At(run);
    const Division at = Divide(i, inner);
    const T* const from = x + at.quotient * count * inner + at.rest;
    T best = from[0];
    for (int64_t k = 1; k < count; ++k) {
      const float value = ToFloat(from[k * inner]);
      if (value > ToFloat(best) || value != value) best = from[k * inner];
    }
    y[i] = best;
  }
};
CudaError Max(const CudaCall& call) {
  const CudaTensor& x = call.inputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(call.outputs[0]),
            MaxOf<T>{Middle(x, AxisAttr(call, x)), DataOf<T>(x), DataOf<T>(call.outputs[0])});
  });
}

// dy at the first of the largest elements, 0 elsewhere.
template <class T>
struct MaxGrad {
  Middle shape;
  const T *x, *dy;
  T* dx;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t inner = shape.inner.At(run), count = shape.count.At(run);
    const Division at = Divide(i, inner);
    const int64_t begin = at.quotient * count * inner + at.rest;
    int64_t largest = 0;
    for (int64_t k = 1; k < count; ++k) {
      if (ToFloat(x[begin + k * inner]) > ToFloat(x[begin + largest * inner])) largest = k;
    }
    for (int64_t k = 0; k < count; ++k) {
      dx[begin + k * inner] = k == largest ? dy[i] : To<T>(0.0f);
    }
  }
};
CudaError RunMaxGrad(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &dy = call.inputs[1];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(dy),
            MaxGrad<T>{Middle(x, AxisAttr(call, x)), DataOf<T>(x), DataOf<T>(dy),
                       DataOf<T>(call.outputs[0])});
  });
}

constexpr CudaKernel kKernels[] = {
    {"reduce_sum", Sum<OverAxes>, Scratch<OverAxes>},
    {"reduce_mean", Mean, Scratch<OverAxes>},
    {"batch_count", BatchCount},
    {"reduce_batch", Sum<OverRows>, Scratch<OverRows>},
    {"reduce_to", Sum<OverRepeated>, Scratch<OverRepeated>},
    {"reduce_max", Max},
    {"reduce_max_grad", RunMaxGrad},
};

}  // namespace

CudaKernelList ReduceCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
