// Matrix products, bias, and layers as the pass `fuse` makes them.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"
#include "ops/gemm/gemm_cuda.cuh"

namespace dt {
namespace {

// The attribute `math` of a product of floats: fp32 (default), tf32, or bf16 (operands rounded to
// bf16, sums in float).
enum class Math { kFp32, kTf32, kBf16 };

Math MathOf(const CudaCall& call) {
  const char* text = TextAttr(call, "math", "fp32");
  if (call.inputs[0].dtype != kCudaF32) return Math::kFp32;
  if (std::strcmp(text, "bf16") == 0) return Math::kBf16;
  return std::strcmp(text, "tf32") == 0 ? Math::kTf32 : Math::kFp32;
}

// cuBLASLt's arguments are capacities. Rows beyond the true size give result rows that nobody
// reads; but if rows are the inner dimension, they must be zeros.
bool IsCapacity(const CudaTensor& t) { return t.symbol[0] > 1; }
CudaError CheckInner(const CudaTensor& t) {
  for (int i = 1; i < t.rank; ++i) {
    if (t.symbol[i] > 1) return "a matrix product on a card needs rows or columns that do not vary";
  }
  return nullptr;
}

template <class T>
struct ZeroBeyond {
  Count size;
  T* data;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    if (i >= size.At(run)) data[i] = To<T>(0.0f);
  }
};
// Zeroes a tensor's memory beyond its true size, which holds no value.
void ZeroTail(const CudaCall& call, const CudaTensor& t) {
  const Count size = SizeOf(t), whole = Fixed(size.extent);
  if (t.dtype == kCudaF32) {
    ForEach(call, whole, ZeroBeyond<float>{size, DataOf<float>(t)});
  } else {
    ForEach(call, whole, ZeroBeyond<__nv_bfloat16>{size, DataOf<__nv_bfloat16>(t)});
  }
}

struct RoundToBf16 {
  const float* from;
  __nv_bfloat16* to;
  __device__ void operator()(int64_t i, const CudaRun&) const {
    to[i] = To<__nv_bfloat16>(from[i]);
  }
};

size_t RoundedBytes(const CudaTensor& t) {
  return (static_cast<size_t>(SizeOf(t).extent) * sizeof(__nv_bfloat16) + 255) / 256 * 256;
}
size_t RoundedScratch(const CudaCall& call) {
  return RoundedBytes(call.inputs[0]) + RoundedBytes(call.inputs[1]);
}
size_t Scratch(const CudaCall& call) {
  return MathOf(call) == Math::kBf16 ? RoundedScratch(call) : 0;
}

// Sets the operands of a product to bf16: as stored, or rounded into the node's scratch memory.
void UseBf16(const CudaCall& call, GemmTask* task) {
  const CudaTensor &a = call.inputs[0], &b = call.inputs[1];
  auto* const left = static_cast<__nv_bfloat16*>(call.scratch);
  auto* const right = left + RoundedBytes(a) / sizeof(__nv_bfloat16);
  const auto rounded = [&](const CudaTensor& from, __nv_bfloat16* to) -> const void* {
    if (from.dtype == kCudaBf16) return from.data;
    ForEach(call, Fixed(SizeOf(from).extent), RoundToBf16{DataOf<float>(from), to});
    return to;
  };
  task->a = rounded(a, left);
  task->b = rounded(b, right);
  task->in_type = kCudaBf16;
}

CudaError Multiply(const CudaCall& call, GemmTask task) {
  const CudaTensor &a = call.inputs[0], &b = call.inputs[1];
  const Math math = MathOf(call);
  task.a = a.data;
  task.b = b.data;
  task.c = call.outputs[0].data;
  task.in_type = a.dtype;
  task.out_type = call.outputs[0].dtype;
  task.math = math == Math::kTf32 ? GemmMath::kTf32 : GemmMath::kFp32;
  if (math == Math::kBf16) UseBf16(call, &task);
  if (CudaError e = Launched()) return e;
  return Gemm(*call.stream, task);
}

CudaError CheckSizes(const CudaCall& call) {
  if (CudaError e = CheckInner(call.inputs[0])) return e;
  if (CudaError e = CheckInner(call.inputs[1])) return e;
  return CheckInner(call.outputs[0]);
}
CudaError CheckOperands(const CudaCall& call) {
  uint8_t type = kCudaF32;
  if (CudaError e = CheckCall(call, &type)) return e;
  return CheckSizes(call);
}

// The task of matmul. If rows are the inner dimension, rows beyond the true size are zeroed.
GemmTask MatmulTask(const CudaCall& call) {
  const CudaTensor &a = call.inputs[0], &b = call.inputs[1];
  GemmTask task;
  task.transpose_a = BoolAttr(call, "transpose_a", false);
  task.transpose_b = BoolAttr(call, "transpose_b", false);
  task.m = (task.transpose_a ? ColsOf(a) : RowsOf(a)).extent;
  task.k = (task.transpose_a ? RowsOf(a) : ColsOf(a)).extent;
  task.n = (task.transpose_b ? RowsOf(b) : ColsOf(b)).extent;
  if (task.transpose_a && IsCapacity(a)) ZeroTail(call, a);
  if (!task.transpose_b && IsCapacity(b)) ZeroTail(call, b);
  return task;
}

CudaError Matmul(const CudaCall& call) {
  if (CudaError e = CheckOperands(call)) return e;
  return Multiply(call, MatmulTask(call));
}

// Some operands are floats and some bf16.
CudaError MixedMatmul(const CudaCall& call) {
  if (CudaError e = CheckSizes(call)) return e;
  if (call.outputs[0].dtype != kCudaF32) return "mixed_matmul gives floats";
  GemmTask task = MatmulTask(call);
  task.c = call.outputs[0].data;
  UseBf16(call, &task);
  if (CudaError e = Launched()) return e;
  return Gemm(*call.stream, task);
}

CudaError BatchMatmul(const CudaCall& call) {
  const CudaTensor &a = call.inputs[0], &out = call.outputs[0];
  if (CudaError e = CheckOperands(call)) return e;
  GemmTask task;
  task.transpose_a = BoolAttr(call, "transpose_a", false);
  task.transpose_b = BoolAttr(call, "transpose_b", false);
  task.m = out.extent[out.rank - 2];
  task.n = out.extent[out.rank - 1];
  task.k = a.extent[a.rank - (task.transpose_a ? 2 : 1)];
  task.batch = Product(out, 0, out.rank - 2).extent;
  return Multiply(call, task);
}

template <class T>
struct PlusRow {
  Count cols;
  const T *x, *bias;
  T* y;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    y[i] = To<T>(ToFloat(x[i]) + ToFloat(bias[Divide(i, cols.At(run)).rest]));
  }
};
CudaError BiasAdd(const CudaCall& call) {
  const CudaTensor& x = call.inputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(
        call, SizeOf(x),
        PlusRow<T>{ColsOf(x), DataOf<T>(x), DataOf<T>(call.inputs[1]), DataOf<T>(call.outputs[0])});
  });
}

// ------------------------------------------------------------------ layers

// A product of the rows of x with a weight or, if `transposed`, with its transpose.
GemmTask RowsTimes(const CudaTensor& x, const CudaTensor& weight, bool transposed) {
  GemmTask task;
  task.transpose_b = transposed;
  task.m = RowsOf(x).extent;
  task.k = weight.extent[transposed ? 1 : 0];
  task.n = weight.extent[transposed ? 0 : 1];
  return task;
}

CudaError DenseLayer(const CudaCall& call) {
  if (CudaError e = CheckOperands(call)) return e;
  GemmTask task = RowsTimes(call.inputs[0], call.inputs[1], false);
  task.bias = call.inputs[2].data;
  task.relu = std::strcmp(TextAttr(call, "activation", "none"), "relu") == 0;
  return Multiply(call, task);
}

// dx = scale · dy where y is above 0, else 0, in output 0, which may be dy; its sums over rows go
// to output 1.
template <class T>
struct ReluMaskGrad {
  const T *y, *dy;
  T* dx;
  float scale;
  __device__ void operator()(int64_t i, const CudaRun&) const {
    dx[i] = To<T>(ToFloat(y[i]) > 0.0f ? ToFloat(dy[i]) * scale : 0.0f);
  }
};
CudaError ReluBias(const CudaCall& call, const CudaTensor& y, const CudaTensor& dy, float* parts) {
  const CudaTensor &dx = call.outputs[0], &sums = call.outputs[1];
  const auto scale = static_cast<float>(1 / (1 - FloatAttr(call, "dropout", 0)));
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(y), ReluMaskGrad<T>{DataOf<T>(y), DataOf<T>(dy), DataOf<T>(dx), scale});
    SumRows(call, {RowsOf(dx), ColsOf(dx), parts}, ColumnOf<T>{ColsOf(dx), DataOf<T>(dx)},
            StoreColumn<T>{DataOf<T>(sums)});
  });
}

size_t SumsBytes(const CudaCall& call) {
  return SumRowsBytes(RowsOf(call.outputs[0]), ColsOf(call.outputs[0]));
}
CudaError ReluBiasGrad(const CudaCall& call) {
  return ReluBias(call, call.inputs[0], call.inputs[1], static_cast<float*>(call.scratch));
}

// The rounded operands of the product, then the partial sums.
size_t DenseLayerBackScratch(const CudaCall& call) { return Scratch(call) + SumsBytes(call); }
CudaError DenseLayerBack(const CudaCall& call) {
  if (CudaError e = CheckOperands(call)) return e;
  if (CudaError e = Multiply(call, RowsTimes(call.inputs[0], call.inputs[1], true))) return e;
  auto* const parts = reinterpret_cast<float*>(static_cast<char*>(call.scratch) + Scratch(call));
  return ReluBias(call, call.inputs[2], call.outputs[0], parts);
}

constexpr CudaKernel kKernels[] = {
    {"matmul", Matmul, Scratch},
    {"mixed_matmul", MixedMatmul, RoundedScratch},
    {"batch_matmul", BatchMatmul, Scratch},
    {"bias_add", BiasAdd},
    {"dense_layer", DenseLayer, Scratch},
    {"dense_layer_back", DenseLayerBack, DenseLayerBackScratch},
    {"relu_bias_grad", ReluBiasGrad, SumsBytes},
};

}  // namespace

CudaKernelList DenseCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
