// Helpers of the CUDA kernels: attributes, sizes that are read on the card, loops over them.
//
// A launch knows only capacities; a kernel reads the true sizes from the CudaRun. So grids are made
// for `extent`, and every loop ends at the true number, which may be 0.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "common/device/cuda_stream.cuh"
#include "common/device/cuda_table.h"

namespace dt {

// ------------------------------------------------------------------ attributes

inline const CudaAttr* FindAttr(const CudaCall& call, const char* name) {
  for (size_t i = 0; i < call.attr_count; ++i) {
    if (std::strcmp(call.attrs[i].name, name) == 0) return &call.attrs[i];
  }
  return nullptr;
}
inline int64_t IntAttr(const CudaCall& call, const char* name, int64_t fallback) {
  const CudaAttr* attr = FindAttr(call, name);
  return attr == nullptr ? fallback : attr->number;
}
inline bool BoolAttr(const CudaCall& call, const char* name, bool fallback) {
  return IntAttr(call, name, fallback ? 1 : 0) != 0;
}
inline double FloatAttr(const CudaCall& call, const char* name, double fallback) {
  const CudaAttr* attr = FindAttr(call, name);
  if (attr == nullptr) return fallback;
  return attr->kind == CudaAttr::Kind::kFloat ? attr->real : static_cast<double>(attr->number);
}
inline const char* TextAttr(const CudaCall& call, const char* name, const char* fallback) {
  const CudaAttr* attr = FindAttr(call, name);
  return attr == nullptr || attr->text == nullptr ? fallback : attr->text;
}

// ------------------------------------------------------------------ sizes

// A product of dimensions with at most two symbols.
struct Count {
  int64_t times = 1;
  int64_t extent = 1;  // Known on the host; at least the true number.
  int32_t symbols[2] = {0, 0};

  __device__ int64_t At(const CudaRun& run) const {
    return times * run.sizes[symbols[0]] * run.sizes[symbols[1]];
  }
  bool is_one() const { return times == 1 && symbols[0] == 0; }
};
inline Count Fixed(int64_t n) { return {.times = n, .extent = n}; }
inline Count operator*(Count a, const Count& b) {
  a.times *= b.times;
  a.extent *= b.extent;
  for (const int32_t symbol : b.symbols) {
    if (symbol != 0) a.symbols[a.symbols[0] == 0 ? 0 : 1] = symbol;
  }
  return a;
}
inline bool operator==(const Count& a, const Count& b) {
  const bool straight = a.symbols[0] == b.symbols[0] && a.symbols[1] == b.symbols[1];
  const bool crossed = a.symbols[0] == b.symbols[1] && a.symbols[1] == b.symbols[0];
  return a.times == b.times && (a.times == 0 || straight || crossed);
}

inline Count DimOf(const CudaTensor& t, int i) {
  return {.times = t.times[i], .extent = t.extent[i], .symbols = {t.symbol[i], 0}};
}
inline Count Product(const CudaTensor& t, int begin, int end) {
  Count product;
  for (int i = begin; i < end; ++i) product = product * DimOf(t, i);
  return product;
}
inline Count SizeOf(const CudaTensor& t) { return Product(t, 0, t.rank); }
// Rows and columns of a tensor seen as the matrix [all but the last, last].
inline Count RowsOf(const CudaTensor& t) { return Product(t, 0, t.rank - 1); }
inline Count ColsOf(const CudaTensor& t) { return DimOf(t, t.rank - 1); }
// Rows and columns of a tensor seen as the matrix [first, all others].
inline Count SamplesOf(const CudaTensor& t) { return DimOf(t, 0); }
inline Count PerSample(const CudaTensor& t) { return Product(t, 1, t.rank); }

// Position of the attribute `axis`, which counts from the end if negative.
inline int AxisAttr(const CudaCall& call, const CudaTensor& t) {
  const int64_t axis = IntAttr(call, "axis", -1);
  return static_cast<int>(axis < 0 ? axis + t.rank : axis);
}

// ------------------------------------------------------------------ element types

__device__ inline float ToFloat(float x) { return x; }
__device__ inline float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T>
__device__ inline T To(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    return __float2bfloat16_rn(x);
  }
}

template <class T>
T* DataOf(const CudaTensor& t) {
  return static_cast<T*>(t.data);
}
inline const uint32_t* IndexOf(const CudaTensor& t) { return static_cast<const uint32_t*>(t.data); }

inline CudaError Launched() { return TextOf(cudaGetLastError()); }

// Checks that all float tensors have one type, and every tensor at most two varying dimensions.
inline CudaError CheckCall(const CudaCall& call, uint8_t* type) {
  bool found = false;
  for (size_t i = 0; i < call.input_count + call.output_count; ++i) {
    const CudaTensor& t =
        i < call.input_count ? call.inputs[i] : call.outputs[i - call.input_count];
    int varying = 0;
    for (int d = 0; d < t.rank; ++d) varying += t.symbol[d] != 0;
    if (varying > 2) return "a CUDA kernel takes at most two dimensions that vary";
    if (t.dtype == kCudaU32) continue;
    if (t.dtype != kCudaF32 && t.dtype != kCudaBf16) return "a CUDA kernel takes f32 or bf16";
    if (found && t.dtype != *type) return "a CUDA kernel takes floats of one type, not of two";
    *type = t.dtype;
    found = true;
  }
  return nullptr;
}

// Calls body(T()) with T = float or __nv_bfloat16.
template <class Body>
CudaError OnFloat(const CudaCall& call, Body&& body) {
  uint8_t type = kCudaF32;
  if (CudaError e = CheckCall(call, &type)) return e;
  if (type == kCudaF32) {
    body(float());
  } else {
    body(__nv_bfloat16());
  }
  return Launched();
}

// ------------------------------------------------------------------ loops

inline constexpr unsigned kThreads = 256, kWarp = 32;
inline constexpr int64_t kBlocksMax = 4096;

// At least 1, since a grid must not be empty.
inline unsigned BlocksFor(int64_t n, int64_t per_block = kThreads) {
  const int64_t blocks = (n + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < 1 ? 1 : (blocks > kBlocksMax ? kBlocksMax : blocks));
}

struct Grid {
  dim3 blocks, threads = kThreads;
  size_t shared_bytes = 0;  // Size of the memory that SharedFloats returns.
};
// Errors are returned by Launched().
template <class... Parameters, class... Arguments>
void LaunchKernel(const CudaCall& call, const Grid& grid, void (*kernel)(Parameters...),
                  const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = LaunchOn(*call.stream);
  cudaLaunchKernelEx(&config, kernel, arguments...);
}
__device__ inline float* SharedFloats() {
  extern __shared__ float dt_shared_floats[];
  return dt_shared_floats;
}

// Calls f(i, run) for each i below n.
template <class F>
__global__ void __launch_bounds__(kThreads) ForEachKernel(F f, Count n, const CudaRun* run) {
  const int64_t count = n.At(*run), stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    f(i, *run);
  }
}
template <class F>
void ForEach(const CudaCall& call, const Count& n, const F& f) {
  LaunchKernel(call, {BlocksFor(n.extent)}, ForEachKernel<F>, f, n, call.run);
}

// Calls f(row, lane, run) with one warp for each row.
template <class F>
__global__ void __launch_bounds__(kThreads) ForRowsKernel(F f, Count rows, const CudaRun* run) {
  const int64_t count = rows.At(*run), warps = kThreads / kWarp;
  for (int64_t r = blockIdx.x * warps + threadIdx.x / kWarp; r < count; r += gridDim.x * warps) {
    f(r, static_cast<int>(threadIdx.x % kWarp), *run);
  }
}
template <class F>
void ForRows(const CudaCall& call, const Count& rows, const F& f) {
  const unsigned blocks = BlocksFor(rows.extent, kThreads / kWarp);
  LaunchKernel(call, {blocks}, ForRowsKernel<F>, f, rows, call.run);
}

struct Division {
  int64_t quotient, rest;
};
// 64-bit division costs several times as much as 32-bit division.
__device__ inline Division Divide(int64_t n, int64_t by) {
  if (((n | by) >> 32) == 0) {
    const auto a = static_cast<uint32_t>(n), b = static_cast<uint32_t>(by);
    return {a / b, a % b};
  }
  return {n / by, n % by};
}

// ------------------------------------------------------------------ within a warp

// Every lane gets the result; the order of the sum is fixed.
__device__ inline float WarpSum(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}
__device__ inline double WarpSum(double x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}
__device__ inline float WarpMax(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
  }
  return x;
}

}  // namespace dt
