// Loops over tensors with any strides: broadcasting, reduction, transposition.
#pragma once

#include "ops/cuda/util.cuh"

namespace dt {

// Dimensions, innermost first, and for each operand the number of elements that a step along a
// dimension moves by (0: it stays).
template <int kOperands>
struct Strided {
  int rank = 0;
  Count dims[kCudaRankMax];
  Count steps[kOperands][kCudaRankMax];

  // Adds the next outer dimension. It is joined with the one before if all operands traverse both
  // with one stride.
  void Add(const Count& dim, const Count (&by)[kOperands]) {
    if (dim.is_one()) return;
    bool joins = rank > 0;
    for (int k = 0; joins && k < kOperands; ++k) {
      joins = by[k] == steps[k][rank - 1] * dims[rank - 1];
    }
    if (joins) {
      dims[rank - 1] = dims[rank - 1] * dim;
      return;
    }
    dims[rank] = dim;
    for (int k = 0; k < kOperands; ++k) steps[k][rank] = by[k];
    ++rank;
  }
};

// Number of elements that a step along dimension i of a dense tensor moves by; 0 if the dimension
// is 1.
inline Count StepOf(const CudaTensor& t, int i) {
  return DimOf(t, i).is_one() ? Fixed(0) : Product(t, i + 1, t.rank);
}

// A loop over `out` with right-aligned operands broadcast to its shape.
template <int kOperands>
Strided<kOperands> Broadcast(const CudaTensor& out, const CudaTensor (&in)[kOperands]) {
  Strided<kOperands> loop;
  for (int i = out.rank - 1; i >= 0; --i) {
    Count by[kOperands];
    for (int k = 0; k < kOperands; ++k) {
      const int own = i - (out.rank - in[k].rank);
      by[k] = own < 0 ? Fixed(0) : StepOf(in[k], own);
    }
    loop.Add(DimOf(out, i), by);
  }
  return loop;
}

// A Strided loop with the true sizes.
template <int kOperands>
struct Walk {
  int rank;
  int64_t dims[kCudaRankMax];
  int64_t steps[kOperands][kCudaRankMax];

  // The first threads of a block read; the others must wait for them.
  __device__ void Read(const Strided<kOperands>& loop, const CudaRun& run) {
    const int thread = static_cast<int>(threadIdx.x), width = kOperands + 1;
    if (thread == 0) rank = loop.rank;
    if (thread >= loop.rank * width) return;
    const int d = thread / width, k = thread % width;
    if (k == kOperands) {
      dims[d] = loop.dims[d].At(run);
    } else {
      steps[k][d] = loop.steps[k][d].At(run);
    }
  }
  // The offsets of the operands at position i of the loop.
  __device__ void Offsets(int64_t i, int64_t (&at)[kOperands]) const {
    for (int k = 0; k < kOperands; ++k) at[k] = 0;
    for (int d = 0; d < rank; ++d) {
      const Division part = d + 1 < rank ? Divide(i, dims[d]) : Division{0, i};
      for (int k = 0; k < kOperands; ++k) at[k] += part.rest * steps[k][d];
      i = part.quotient;
    }
  }
};

// Calls f(i, offsets of the operands) for each i below n.
template <int kOperands, class F>
__global__ void __launch_bounds__(kThreads)
    StridedKernel(F f, Strided<kOperands> loop, Count n, const CudaRun* run) {
  __shared__ Walk<kOperands> walk;
  walk.Read(loop, *run);
  __syncthreads();
  const int64_t count = n.At(*run), stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    int64_t at[kOperands];
    walk.Offsets(i, at);
    f(i, at);
  }
}
template <int kOperands, class F>
void ForStrided(const CudaCall& call, const Count& n, const Strided<kOperands>& loop, const F& f) {
  LaunchKernel(call, {BlocksFor(n.extent)}, StridedKernel<kOperands, F>, f, loop, n, call.run);
}

}  // namespace dt
