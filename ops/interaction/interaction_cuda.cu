// FM, pairwise dot products, DCN's cross layer.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"

namespace dt {
namespace {

// ------------------------------------------------------------------ fm

// [B, fields, dim]
struct Fields {
  Count fields, dim;
  Fields(Count fields_of, Count dim_of) : fields(fields_of), dim(dim_of) {}
  explicit Fields(const CudaTensor& x) : fields(DimOf(x, 1)), dim(DimOf(x, 2)) {}
};

// ½ Σ_d ((Σ_f x)² - Σ_f x²), with a warp for each sample.
template <class T>
struct Fm {
  Fields shape;
  const T* x;
  T* y;
  __device__ void operator()(int64_t b, int lane, const CudaRun& run) const {
    const int64_t fields = shape.fields.At(run), dim = shape.dim.At(run);
    const T* const sample = x + b * fields * dim;
    float total = 0;
    for (int64_t d = lane; d < dim; d += kWarp) {
      float sum = 0, squares = 0;
      for (int64_t f = 0; f < fields; ++f) {
        const float value = ToFloat(sample[f * dim + d]);
        sum += value;
        squares += value * value;
      }
      total += sum * sum - squares;
    }
    total = WarpSum(total);
    if (lane == 0) y[b] = To<T>(0.5f * total);
  }
};
CudaError RunFm(const CudaCall& call) {
  const CudaTensor& x = call.inputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, DimOf(x, 0), Fm<T>{Fields(x), DataOf<T>(x), DataOf<T>(call.outputs[0])});
  });
}

// dx = dy (Σ_f x - x), for one column of a sample.
template <class T>
struct FmGrad {
  Fields shape;
  const T *x, *dy;
  T* dx;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t fields = shape.fields.At(run), dim = shape.dim.At(run);
    const Division at = Divide(i, dim);
    const int64_t begin = at.quotient * fields * dim + at.rest;
    const float grad = ToFloat(dy[at.quotient]);
    float sum = 0;
    for (int64_t f = 0; f < fields; ++f) sum += ToFloat(x[begin + f * dim]);
    for (int64_t f = 0; f < fields; ++f) {
      const int64_t k = begin + f * dim;
      dx[k] = To<T>(grad * (sum - ToFloat(x[k])));
    }
  }
};
CudaError RunFmGrad(const CudaCall& call) {
  const CudaTensor& x = call.inputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(
        call, DimOf(x, 0) * DimOf(x, 2),
        FmGrad<T>{Fields(x), DataOf<T>(x), DataOf<T>(call.inputs[1]), DataOf<T>(call.outputs[0])});
  });
}

// ------------------------------------------------------------------ dot

// One block for each sample. Its fields are in shared memory if they fit there, as floats with one
// element between fields, so that adjacent fields are in different banks.
struct Sample {
  float* values;
  int stride;
};
constexpr size_t kSharedBytes = 48 * 1024;

template <class T>
__device__ void Load(const T* from, int fields, int dim, const Sample& to) {
  for (int i = static_cast<int>(threadIdx.x); i < fields * dim; i += blockDim.x) {
    to.values[i / dim * to.stride + i % dim] = ToFloat(from[i]);
  }
}

// Pair number p is (i, j), i > j, in the order (1,0), (2,0), (2,1), (3,0), ….
struct Pair {
  int i, j;
};
__device__ Pair PairAt(int p) {
  int i = static_cast<int>((1.0f + sqrtf(1.0f + 8.0f * static_cast<float>(p))) * 0.5f);
  while (i * (i - 1) / 2 > p) --i;
  while ((i + 1) * i / 2 <= p) ++i;
  return {i, p - i * (i - 1) / 2};
}

// The data of a block: fields and gradients of pairs, in shared memory or in global memory.
template <class T, bool kShared>
struct BlockOf {
  const T *x, *dy;
  int dim;
  Sample sample;
  const float* grads;
  __device__ float At(int field, int d) const {
    if constexpr (kShared) {
      return sample.values[field * sample.stride + d];
    } else {
      return ToFloat(x[field * dim + d]);
    }
  }
  __device__ float Grad(int p) const {
    if constexpr (kShared) {
      return grads[p];
    } else {
      return ToFloat(dy[p]);
    }
  }
  __device__ float Dot(Pair pair) const {
    float sum = 0;
    for (int d = 0; d < dim; ++d) sum += At(pair.i, d) * At(pair.j, d);
    return sum;
  }
  // Σ dy(i, j) x_j over the other fields j.
  __device__ float GradOf(int i, int d, int fields) const {
    float sum = 0;
    for (int j = 0; j < fields; ++j) {
      const int p = i > j ? i * (i - 1) / 2 + j : j * (j - 1) / 2 + i;
      if (j != i) sum += Grad(p) * At(j, d);
    }
    return sum;
  }
};

// Each sample of y has its pairs behind `before` other columns.
template <class T, bool kShared>
__global__ void __launch_bounds__(kThreads)
    DotKernel(Fields shape, Count samples, const CudaRun* run, const T* x, int before, T* y) {
  const int64_t count = samples.At(*run);
  const int fields = static_cast<int>(shape.fields.At(*run));
  const int dim = static_cast<int>(shape.dim.At(*run)), pairs = fields * (fields - 1) / 2;
  const Sample sample{SharedFloats(), dim + 1};
  for (int64_t b = blockIdx.x; b < count; b += gridDim.x) {
    const BlockOf<T, kShared> own{x + b * fields * dim, nullptr, dim, sample, nullptr};
    if constexpr (kShared) {
      Load(own.x, fields, dim, sample);
      __syncthreads();
    }
    for (int p = static_cast<int>(threadIdx.x); p < pairs; p += kThreads) {
      y[b * (before + pairs) + before + p] = To<T>(own.Dot(PairAt(p)));
    }
    if constexpr (kShared) __syncthreads();
  }
}

// Computes dx. In shared memory the gradients of the pairs follow the fields. In dy they are behind
// `before` other columns.
template <class T, bool kShared>
__global__ void __launch_bounds__(kThreads)
    DotGradKernel(Fields shape, Count samples, const CudaRun* run, const T* x, const T* dy,
                  int before, T* dx) {
  const int64_t count = samples.At(*run);
  const int fields = static_cast<int>(shape.fields.At(*run));
  const int dim = static_cast<int>(shape.dim.At(*run)), pairs = fields * (fields - 1) / 2;
  const Sample sample{SharedFloats(), dim + 1};
  float* const grads = sample.values + fields * sample.stride;
  for (int64_t b = blockIdx.x; b < count; b += gridDim.x) {
    const T* const own_dy = dy + b * (before + pairs) + before;
    const BlockOf<T, kShared> own{x + b * fields * dim, own_dy, dim, sample, grads};
    if constexpr (kShared) {
      Load(own.x, fields, dim, sample);
      Load(own.dy, 1, pairs, {grads, pairs});
      __syncthreads();
    }
    for (int k = static_cast<int>(threadIdx.x); k < fields * dim; k += kThreads) {
      dx[b * fields * dim + k] = To<T>(own.GradOf(k / dim, k % dim, fields));
    }
    if constexpr (kShared) __syncthreads();
  }
}

// The inputs of dot, or their gradients, as one tensor [B, fields, dim]: a single tensor is used as
// it is; several are joined in the node's scratch memory.
struct JoinedFields {
  int64_t fields = 0, dim = 0;
  Count samples;
  const CudaTensor* parts = nullptr;
  size_t part_count = 0;

  JoinedFields(const CudaTensor* tensors, size_t count)
      : dim(tensors[0].extent[tensors[0].rank - 1]),
        samples(DimOf(tensors[0], 0)),
        parts(tensors),
        part_count(count) {
    for (size_t i = 0; i < count; ++i) fields += FieldsOf(tensors[i]);
  }
  static int64_t FieldsOf(const CudaTensor& t) { return t.rank == 3 ? t.extent[1] : 1; }
  size_t ScratchBytes() const {
    const auto elements = static_cast<size_t>(samples.extent * fields * dim);
    return part_count == 1 ? 0 : (elements * sizeof(float) + 255) / 256 * 256;
  }
  // Shared memory of a block.
  size_t BlockBytes(bool with_grads) const {
    const int64_t pairs = fields * (fields - 1) / 2;
    return static_cast<size_t>(fields * (dim + 1) + (with_grads ? pairs : 0)) * sizeof(float);
  }
  Fields shape() const { return {Fixed(fields), Fixed(dim)}; }
};

template <class T>
struct MovePart {
  // `row`: elements of a sample in the whole; `begin` and `length`: the part in it.
  int64_t row, begin, length;
  T *whole, *part;
  bool join;  // Copies the part into the whole; if false, out of it.
  __device__ void operator()(int64_t i, const CudaRun&) const {
    const Division at = Divide(i, length);
    T& element = whole[at.quotient * row + begin + at.rest];
    if (join) element = part[i];
    if (!join) part[i] = element;
  }
};
template <class T>
void MoveParts(const CudaCall& call, const JoinedFields& of, T* whole, bool join) {
  int64_t begin = 0;
  for (size_t i = 0; i < of.part_count && of.part_count > 1; ++i) {
    const int64_t length = JoinedFields::FieldsOf(of.parts[i]) * of.dim;
    ForEach(call, of.samples * Fixed(length),
            MovePart<T>{of.fields * of.dim, begin, length, whole, DataOf<T>(of.parts[i]), join});
    begin += length;
  }
}

// concat_dot has another input behind the fields.
JoinedFields DotInputs(const CudaCall& call) { return {call.inputs, call.input_count}; }
JoinedFields ConcatDotInputs(const CudaCall& call) { return {call.inputs, call.input_count - 1}; }
size_t DotScratch(const CudaCall& call) { return DotInputs(call).ScratchBytes(); }
size_t ConcatDotScratch(const CudaCall& call) { return ConcatDotInputs(call).ScratchBytes(); }
CudaError WriteDots(const CudaCall& call, const JoinedFields& x, int before) {
  const size_t bytes = x.BlockBytes(false);
  const unsigned blocks = BlocksFor(x.samples.extent, 1);
  return OnFloat(call, [&]<class T>(T) {
    T* const from = x.part_count == 1 ? DataOf<T>(x.parts[0]) : static_cast<T*>(call.scratch);
    MoveParts(call, x, from, true);
    T* const to = DataOf<T>(call.outputs[0]);
    const bool fits = bytes <= kSharedBytes;
    LaunchKernel(call, {blocks, kThreads, fits ? bytes : 0},
                 fits ? DotKernel<T, true> : DotKernel<T, false>, x.shape(), x.samples, call.run,
                 from, before, to);
  });
}
CudaError RunDot(const CudaCall& call) { return WriteDots(call, DotInputs(call), 0); }
CudaError RunConcatDot(const CudaCall& call) {
  const JoinedFields x = ConcatDotInputs(call);
  const CudaTensor& before = call.inputs[x.part_count];
  const int64_t width = before.extent[1], row = call.outputs[0].extent[1];
  if (CudaError e = WriteDots(call, x, static_cast<int>(width))) return e;
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, x.samples * Fixed(width),
            MovePart<T>{row, 0, width, DataOf<T>(call.outputs[0]), DataOf<T>(before), true});
  });
}

// Scratch memory holds the joined fields, then their gradients.
JoinedFields DotGradInputs(const CudaCall& call) { return {call.inputs, call.input_count - 1}; }
size_t DotGradScratch(const CudaCall& call) { return 2 * DotGradInputs(call).ScratchBytes(); }
CudaError RunDotGrad(const CudaCall& call) {
  const JoinedFields x = DotGradInputs(call), dx(call.outputs, x.part_count);
  const CudaTensor& dy = call.inputs[x.part_count];
  const auto before = static_cast<int>(dy.extent[1] - x.fields * (x.fields - 1) / 2);
  const size_t bytes = x.BlockBytes(true);
  const unsigned blocks = BlocksFor(x.samples.extent, 1);
  return OnFloat(call, [&]<class T>(T) {
    const bool one = x.part_count == 1;
    auto* const second = static_cast<char*>(call.scratch) + x.ScratchBytes();
    T* const from = one ? DataOf<T>(x.parts[0]) : static_cast<T*>(call.scratch);
    T* const to = one ? DataOf<T>(dx.parts[0]) : reinterpret_cast<T*>(second);
    MoveParts(call, x, from, true);
    const T* const grad = DataOf<T>(dy);
    const bool fits = bytes <= kSharedBytes;
    LaunchKernel(call, {blocks, kThreads, fits ? bytes : 0},
                 fits ? DotGradKernel<T, true> : DotGradKernel<T, false>, x.shape(), x.samples,
                 call.run, from, grad, before, to);
    MoveParts(call, dx, to, false);
  });
}

// ------------------------------------------------------------------ cross_layer

template <class T>
__device__ float DotOf(const T* a, const T* b, int64_t n, int lane) {
  float sum = 0;
  for (int64_t d = lane; d < n; d += kWarp) sum += ToFloat(a[d]) * ToFloat(b[d]);
  return WarpSum(sum);
}

template <class T>
struct CrossRow {
  Count dim;
  const T *x0, *x, *w, *bias;
  T* y;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = dim.At(run);
    const T *const first = x0 + r * n, *const from = x + r * n;
    const float s = DotOf(from, w, n, lane);
    for (int64_t d = lane; d < n; d += kWarp) {
      y[r * n + d] = To<T>(ToFloat(first[d]) * s + ToFloat(bias[d]) + ToFloat(from[d]));
    }
  }
};
CudaError CrossLayer(const CudaCall& call) {
  const CudaTensor& x0 = call.inputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, DimOf(x0, 0),
            CrossRow<T>{DimOf(x0, 1), DataOf<T>(x0), DataOf<T>(call.inputs[1]),
                        DataOf<T>(call.inputs[2]), DataOf<T>(call.inputs[3]),
                        DataOf<T>(call.outputs[0])});
  });
}

// s = x·w, ds = dy·x0: dx0 = dy s, dx = dy + ds w, dw = Σ ds x, db = Σ dy.
template <class T>
struct CrossRowGrad {
  Count dim;
  const T *x0, *x, *w, *dy;
  T *dx0, *dx;
  float* slopes;  // The ds of each row.
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = dim.At(run), at = r * n;
    const float s = DotOf(x + at, w, n, lane), ds = DotOf(dy + at, x0 + at, n, lane);
    if (lane == 0) slopes[r] = ds;
    for (int64_t d = lane; d < n; d += kWarp) {
      const float grad = ToFloat(dy[at + d]);
      dx0[at + d] = To<T>(grad * s);
      dx[at + d] = To<T>(grad + ds * ToFloat(w[d]));
    }
  }
};
// The first `dim` columns are dw, the others db.
template <class T>
struct CrossSums {
  Count dim;
  const T *x, *dy;
  const float* slopes;
  T *dw, *db;
  __device__ auto On(int64_t c, const CudaRun& run) const {
    const int64_t n = dim.At(run);
    const bool bias = c >= n;
    return [from = bias ? dy + (c - n) : x + c, slopes = slopes, n, bias](int64_t r) {
      const float value = ToFloat(from[r * n]);
      return bias ? value : slopes[r] * value;
    };
  }
  __device__ void operator()(int64_t c, double sum, const CudaRun& run) const {
    const int64_t n = dim.At(run);
    *(c >= n ? db + (c - n) : dw + c) = To<T>(static_cast<float>(sum));
  }
};

size_t CrossLayerGradScratch(const CudaCall& call) {
  const Count rows = DimOf(call.inputs[0], 0), dim = DimOf(call.inputs[0], 1);
  return static_cast<size_t>(rows.extent) * sizeof(float) + SumRowsBytes(rows, Fixed(2) * dim);
}
CudaError CrossLayerGrad(const CudaCall& call) {
  const CudaTensor& x0 = call.inputs[0];
  const Count rows = DimOf(x0, 0), dim = DimOf(x0, 1);
  auto* const slopes = static_cast<float*>(call.scratch);
  return OnFloat(call, [&]<class T>(T) {
    const T *const x = DataOf<T>(call.inputs[1]), *const dy = DataOf<T>(call.inputs[3]);
    ForRows(call, rows,
            CrossRowGrad<T>{dim, DataOf<T>(x0), x, DataOf<T>(call.inputs[2]), dy,
                            DataOf<T>(call.outputs[0]), DataOf<T>(call.outputs[1]), slopes});
    const CrossSums<T> sums{
        dim, x, dy, slopes, DataOf<T>(call.outputs[2]), DataOf<T>(call.outputs[3])};
    SumRows(call, {rows, Fixed(2) * dim, slopes + rows.extent}, sums, sums);
  });
}

constexpr CudaKernel kKernels[] = {
    {"fm", RunFm},
    {"fm_grad", RunFmGrad},
    {"dot", RunDot, DotScratch},
    {"dot_grad", RunDotGrad, DotGradScratch},
    {"concat_dot", RunConcatDot, ConcatDotScratch},
    {"concat_dot_grad", RunDotGrad, DotGradScratch},
    {"cross_layer", CrossLayer},
    {"cross_layer_grad", CrossLayerGrad, CrossLayerGradScratch},
};

}  // namespace

CudaKernelList InteractionCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
