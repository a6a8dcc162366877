// Outer products of rows, and xDeepFM's layer, which multiplies them by a weight.
#include "ops/cuda/kernels.cuh"
#include "ops/gemm/gemm_cuda.cuh"

namespace dt {
namespace {

template <class T>
__device__ float DotOf(const T* a, const T* b, int64_t n, int lane) {
  float sum = 0;
  for (int64_t d = lane; d < n; d += kWarp) sum += ToFloat(a[d]) * ToFloat(b[d]);
  return WarpSum(sum);
}

// Element p Q + q of a row is x_p y_q.
template <class T>
struct Outer {
  Count left, right;
  const T *x, *y;
  T* z;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t p = left.At(run), q = right.At(run);
    const Division column = Divide(i, q), row = Divide(column.quotient, p);
    z[i] = To<T>(ToFloat(x[column.quotient]) * ToFloat(y[row.quotient * q + column.rest]));
  }
};
CudaError RunOuter(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &y = call.inputs[1];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, RowsOf(x) * ColsOf(x) * ColsOf(y),
            Outer<T>{ColsOf(x), ColsOf(y), DataOf<T>(x), DataOf<T>(y), DataOf<T>(call.outputs[0])});
  });
}

// dx_p = Σ_q dz_pq y_q, with a warp for each; dy_q = Σ_p x_p dz_pq, with a thread for each.
template <class T>
struct OuterLeftGrad {
  Count left, right;
  const T *y, *dz;
  T* dx;
  __device__ void operator()(int64_t i, int lane, const CudaRun& run) const {
    const int64_t q = right.At(run), row = Divide(i, left.At(run)).quotient;
    const float sum = DotOf(dz + i * q, y + row * q, q, lane);
    if (lane == 0) dx[i] = To<T>(sum);
  }
};
template <class T>
struct OuterRightGrad {
  Count left, right;
  const T *x, *dz;
  T* dy;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t p = left.At(run), q = right.At(run);
    const Division at = Divide(i, q);
    float sum = 0;
    for (int64_t k = 0; k < p; ++k) {
      const int64_t place = at.quotient * p + k;
      sum += ToFloat(x[place]) * ToFloat(dz[place * q + at.rest]);
    }
    dy[i] = To<T>(sum);
  }
};
CudaError OuterGrad(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &y = call.inputs[1], &dz = call.inputs[2];
  const Count left = ColsOf(x), right = ColsOf(y);
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, SizeOf(x),
            OuterLeftGrad<T>{left, right, DataOf<T>(y), DataOf<T>(dz), DataOf<T>(call.outputs[0])});
    ForEach(
        call, SizeOf(y),
        OuterRightGrad<T>{left, right, DataOf<T>(x), DataOf<T>(dz), DataOf<T>(call.outputs[1])});
  });
}

// ------------------------------------------------------------------ cin_layer

// At most this many products are in memory at a time.
constexpr int64_t kHeld = int64_t{1} << 24;

// The number of rows is a fixed multiple of the samples, so the host knows it.
struct Cin {
  Count left, right;
  int64_t rows, pairs, units, chunk;
  explicit Cin(const CudaCall& call)
      : left(ColsOf(call.inputs[0])),
        right(ColsOf(call.inputs[1])),
        rows(RowsOf(call.inputs[0]).extent),
        pairs(left.extent * right.extent),
        units(call.inputs[2].extent[1]) {
    const int64_t fit = kHeld / pairs < 64 ? 64 : kHeld / pairs;
    chunk = rows < fit ? rows : fit;
  }
};
CudaError CheckRows(const CudaCall& call) {
  uint8_t type = kCudaF32;
  if (CudaError e = CheckCall(call, &type)) return e;
  for (int i = 0; i < call.inputs[0].rank; ++i) {
    if (call.inputs[0].symbol[i] > 1) return "cin_layer: its rows vary by more than the batch";
  }
  return nullptr;
}

size_t ElementBytes(const CudaCall& call) {
  return call.inputs[0].dtype == kCudaBf16 ? sizeof(__nv_bfloat16) : sizeof(float);
}
size_t CinScratch(const CudaCall& call) {
  const Cin shape(call);
  return static_cast<size_t>(shape.chunk * shape.pairs) * ElementBytes(call);
}

// The rows of one chunk.
template <class T>
struct Chunk {
  int64_t first, count;
  const T *x, *y;
  T* products;
  Chunk(const CudaCall& call, const Cin& shape, int64_t begin)
      : first(begin),
        count(shape.rows - begin < shape.chunk ? shape.rows - begin : shape.chunk),
        x(DataOf<T>(call.inputs[0]) + begin * shape.left.extent),
        y(DataOf<T>(call.inputs[1]) + begin * shape.right.extent),
        products(static_cast<T*>(call.scratch)) {}
  void Multiply(const CudaCall& call, const Cin& shape) const {
    ForEach(call, Fixed(count * shape.pairs), Outer<T>{shape.left, shape.right, x, y, products});
  }
};

template <class T>
CudaError ForwardChunk(const CudaCall& call, const Cin& shape, int64_t begin) {
  const Chunk<T> chunk(call, shape, begin);
  chunk.Multiply(call, shape);
  GemmTask task{.m = chunk.count, .n = shape.units, .k = shape.pairs};
  task.in_type = task.out_type = call.inputs[0].dtype;
  task.a = chunk.products;
  task.b = call.inputs[2].data;
  task.c = DataOf<T>(call.outputs[0]) + begin * shape.units;
  return Gemm(*call.stream, task);
}

// dw is summed chunk by chunk; then the gradient of the products overwrites the products.
template <class T>
CudaError BackwardChunk(const CudaCall& call, const Cin& shape, int64_t begin) {
  const Chunk<T> chunk(call, shape, begin);
  const T* const dz = DataOf<T>(call.inputs[3]) + begin * shape.units;
  chunk.Multiply(call, shape);
  GemmTask weight{.m = shape.pairs, .n = shape.units, .k = chunk.count, .transpose_a = true};
  weight.in_type = weight.out_type = call.inputs[0].dtype;
  weight.adds = begin > 0;
  weight.a = chunk.products;
  weight.b = dz;
  weight.c = call.outputs[2].data;
  if (CudaError e = Gemm(*call.stream, weight)) return e;
  GemmTask back{.m = chunk.count, .n = shape.pairs, .k = shape.units, .transpose_b = true};
  back.in_type = back.out_type = call.inputs[0].dtype;
  back.a = dz;
  back.b = call.inputs[2].data;
  back.c = chunk.products;
  if (CudaError e = Gemm(*call.stream, back)) return e;
  T* const dx = DataOf<T>(call.outputs[0]) + begin * shape.left.extent;
  T* const dy = DataOf<T>(call.outputs[1]) + begin * shape.right.extent;
  ForRows(call, Fixed(chunk.count) * shape.left,
          OuterLeftGrad<T>{shape.left, shape.right, chunk.y, chunk.products, dx});
  ForEach(call, Fixed(chunk.count) * shape.right,
          OuterRightGrad<T>{shape.left, shape.right, chunk.x, chunk.products, dy});
  return nullptr;
}

template <class Run>
CudaError EachChunk(const CudaCall& call, const Run& run) {
  if (CudaError e = CheckRows(call)) return e;
  const Cin shape(call);
  CudaError error = nullptr;
  const CudaError launched = OnFloat(call, [&]<class T>(T one) {
    for (int64_t begin = 0; begin < shape.rows && error == nullptr; begin += shape.chunk) {
      error = run(one, shape, begin);
    }
  });
  return error != nullptr ? error : launched;
}

CudaError CinLayer(const CudaCall& call) {
  return EachChunk(call, [&]<class T>(T, const Cin& shape, int64_t begin) {
    return ForwardChunk<T>(call, shape, begin);
  });
}
CudaError CinLayerGrad(const CudaCall& call) {
  if (RowsOf(call.inputs[0]).extent == 0) {
    const CudaTensor& dw = call.outputs[2];
    const size_t bytes = ElementBytes(call) * static_cast<size_t>(SizeOf(dw).extent);
    return TextOf(cudaMemsetAsync(dw.data, 0, bytes, LaunchOn(*call.stream)));
  }
  return EachChunk(call, [&]<class T>(T, const Cin& shape, int64_t begin) {
    return BackwardChunk<T>(call, shape, begin);
  });
}

constexpr CudaKernel kKernels[] = {
    {"outer", RunOuter},
    {"outer_grad", OuterGrad},
    {"cin_layer", CinLayer, CinScratch},
    {"cin_layer_grad", CinLayerGrad, CinScratch},
};

}  // namespace

CudaKernelList OuterCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
