// Operations of a step on dense parameters: clipping, l2, and the optimizers.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"
#include "ops/update/rules_cuda.cuh"

namespace dt {
namespace {

// ------------------------------------------------------------------ norms

template <class T>
struct RowNorm {
  const T* x;
  T* out;
  Count cols;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t width = cols.At(run);
    double sum = 0;
    for (int64_t c = lane; c < width; c += kWarp) {
      const double value = ToFloat(x[r * width + c]);
      sum += value * value;
    }
    sum = WarpSum(sum);
    if (lane == 0) out[r] = To<T>(static_cast<float>(sqrt(sum)));
  }
};
CudaError RowNorms(const CudaCall& call) {
  const CudaTensor& x = call.inputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, DimOf(x, 0), RowNorm<T>{DataOf<T>(x), DataOf<T>(call.outputs[0]), PerSample(x)});
  });
}

template <class T>
struct SquareOf {
  const T* x;
  __device__ double operator()(int64_t i, const CudaRun&) const {
    const double value = ToFloat(x[i]);
    return value * value;
  }
};
template <class T>
struct StoreNorm {
  T* out;
  __device__ void operator()(double sum, const CudaRun&) const {
    out[0] = To<T>(static_cast<float>(sqrt(sum)));
  }
};
size_t JointNormsScratch(const CudaCall& call) {
  size_t bytes = 0;
  for (size_t i = 0; i < call.input_count; ++i) {
    const size_t own = SumElementsBytes(SizeOf(call.inputs[i]));
    bytes = own > bytes ? own : bytes;
  }
  return bytes;
}
CudaError JointNorms(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    for (size_t i = 0; i < call.input_count; ++i) {
      SumElements(call, SizeOf(call.inputs[i]), static_cast<double*>(call.scratch),
                  SquareOf<T>{DataOf<T>(call.inputs[i])},
                  StoreNorm<T>{DataOf<T>(call.outputs[0]) + i});
    }
  });
}

// ------------------------------------------------------------------ clip_by_global_norm

// Number of tensors in one launch, limited by the size of a kernel's arguments.
constexpr int kTensors = 48;
template <class T>
struct Tensors {
  const T* in[kTensors];
  T* out[kTensors];
  Count size[kTensors];
  int64_t first_part[kTensors];
};

// One row of blocks for each tensor.
template <class T>
__global__ void __launch_bounds__(kThreads)
    SquaresKernel(Tensors<T> of, const CudaRun* run, double* parts) {
  const int k = static_cast<int>(blockIdx.y);
  const int64_t count = of.size[k].At(*run);
  // Pieces beyond the true size are zeros, because FactorKernel adds as many as the capacity has.
  const int64_t pieces = (of.size[k].extent + kPieceElements - 1) / kPieceElements;
  for (int64_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const int64_t begin = piece * kPieceElements;
    const int64_t end = begin + kPieceElements < count ? begin + kPieceElements : count;
    double sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
      const double value = ToFloat(of.in[k][i]);
      sum += value * value;
    }
    sum = BlockSum(sum);
    if (threadIdx.x == 0) parts[of.first_part[k] + piece] = sum;
  }
}

// One block computes the factor of all gradients.
__global__ void __launch_bounds__(kThreads)
    FactorKernel(const double* parts, int64_t pieces, double clip_norm, float* factor) {
  double sum = 0;
  for (int64_t p = threadIdx.x; p < pieces; p += kThreads) sum += parts[p];
  sum = BlockSum(sum);
  if (threadIdx.x != 0) return;
  const double norm = sqrt(sum);
  const double limit = clip_norm / (norm + 1e-6);  // Same as PyTorch's clip_grad_norm_.
  *factor = clip_norm > 0 && limit < 1 ? static_cast<float>(limit) : 1.0f;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    ScaleKernel(Tensors<T> of, const CudaRun* run, const float* factor) {
  const int k = static_cast<int>(blockIdx.y);
  const int64_t count = of.size[k].At(*run), stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    of.out[k][i] = To<T>(ToFloat(of.in[k][i]) * *factor);
  }
}

// Inputs behind the gradients are norms.
int64_t PartsOf(const CudaCall& call) {
  int64_t pieces = 0;
  for (size_t i = call.output_count; i < call.input_count; ++i) {
    pieces += (SizeOf(call.inputs[i]).extent + kPieceElements - 1) / kPieceElements;
  }
  return pieces;
}
// The factor, then the partial sums.
size_t ClipScratch(const CudaCall& call) {
  return static_cast<size_t>(1 + PartsOf(call)) * sizeof(double);
}

// Calls launch(tensors, their number, elements of the largest) for inputs, kTensors at a time.
struct Inputs {
  size_t begin, end;
};
template <class T, class Launch>
void ForTensors(const CudaCall& call, const Inputs& inputs, const Launch& launch) {
  Tensors<T> of{};
  int used = 0;
  int64_t part = 0, largest = 0;
  for (size_t i = inputs.begin; i < inputs.end; ++i) {
    const Count size = SizeOf(call.inputs[i]);
    of.in[used] = DataOf<T>(call.inputs[i]);
    of.out[used] = i < call.output_count ? DataOf<T>(call.outputs[i]) : nullptr;
    of.size[used] = size;
    of.first_part[used] = part;
    part += (size.extent + kPieceElements - 1) / kPieceElements;
    largest = size.extent > largest ? size.extent : largest;
    if (++used < kTensors && i + 1 < inputs.end) continue;
    launch(of, static_cast<unsigned>(used), largest);
    used = 0;
    largest = 0;
  }
}

CudaError ClipByGlobalNorm(const CudaCall& call) {
  auto* const factor = static_cast<float*>(call.scratch);
  auto* const parts = static_cast<double*>(call.scratch) + 1;
  const Inputs grads{0, call.output_count}, norms{call.output_count, call.input_count};
  return OnFloat(call, [&]<class T>(T) {
    ForTensors<T>(call, norms, [&](const Tensors<T>& of, unsigned used, int64_t largest) {
      const dim3 grid(BlocksFor(largest, kPieceElements), used);
      LaunchKernel(call, {grid}, SquaresKernel<T>, of, call.run, parts);
    });
    LaunchKernel(call, {1}, FactorKernel, parts, PartsOf(call), FloatAttr(call, "clip_norm", 0),
                 factor);
    ForTensors<T>(call, grads, [&](const Tensors<T>& of, unsigned used, int64_t largest) {
      const dim3 grid(BlocksFor(largest), used);
      LaunchKernel(call, {grid}, ScaleKernel<T>, of, call.run, factor);
    });
  });
}

// ------------------------------------------------------------------ add_l2

template <class T>
struct PlusScaled {
  float factor;
  const T *grad, *param;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun&) const {
    out[i] = To<T>(ToFloat(grad[i]) + factor * ToFloat(param[i]));
  }
};
CudaError AddL2(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(call.outputs[0]),
            PlusScaled<T>{static_cast<float>(FloatAttr(call, "l2", 0)), DataOf<T>(call.inputs[0]),
                          DataOf<T>(call.inputs[1]), DataOf<T>(call.outputs[0])});
  });
}

// ------------------------------------------------------------------ update

struct Arrays {
  float* value;
  const float* grad;
  float *first, *second;
};
template <class Rule>
__global__ void __launch_bounds__(kThreads)
    UpdateKernel(OptimizerSpec spec, Arrays arrays, Count n, const CudaRun* run) {
  __shared__ Rates rates;
  if (threadIdx.x == 0) rates = RatesFor(spec, run->update_step, run->lr_scale);
  __syncthreads();
  const Rates own = rates;
  const int64_t count = n.At(*run), stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    Element e{arrays.value[i], arrays.grad[i], 0, 0};
    if constexpr (Rule::kStates > 0) e.first = arrays.first[i];
    if constexpr (Rule::kStates > 1) e.second = arrays.second[i];
    Rule::Apply(spec, own, e);
    arrays.value[i] = e.value;
    if constexpr (Rule::kStates > 0) arrays.first[i] = e.first;
    if constexpr (Rule::kStates > 1) arrays.second[i] = e.second;
  }
}

template <class Rule>
CudaError RunUpdate(const CudaCall& call) {
  if (call.input_count != 2 + Rule::kStates) return "update: the optimizer's states do not fit it";
  const auto state = [&](size_t i) {
    return call.input_count > i ? DataOf<float>(call.inputs[i]) : nullptr;
  };
  const Count n = SizeOf(call.inputs[0]);
  const Arrays arrays{DataOf<float>(call.inputs[0]), DataOf<float>(call.inputs[1]), state(2),
                      state(3)};
  LaunchKernel(call, {BlocksFor(n.extent)}, UpdateKernel<Rule>, OptimizerOf(call), arrays, n,
               call.run);
  return Launched();
}

CudaError Update(const CudaCall& call) {
  uint8_t type = kCudaF32;
  if (CudaError e = CheckCall(call, &type)) return e;
  if (type != kCudaF32) return "update: masters and states are f32";
  const auto run = [&]<class Rule>(Rule) -> CudaError {
    if constexpr (Rule::kRowwise) {
      return "update: the optimizer is for tables only";
    } else {
      return RunUpdate<Rule>(call);
    }
  };
  return RunNamedRule(call, run, AllRules());
}

constexpr CudaKernel kKernels[] = {
    {"row_norms", RowNorms},
    {"joint_norms", JointNorms, JointNormsScratch},
    {"clip_by_global_norm", ClipByGlobalNorm, ClipScratch},
    {"add_l2", AddL2},
    {"update", Update},
};

}  // namespace

CudaKernelList UpdateCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
