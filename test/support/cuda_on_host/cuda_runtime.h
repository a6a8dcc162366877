// Replaces CUDA's header of this name, so that the source of the CUDA kernels compiles as C++ and
// runs on the CPU: the threads of a block take turns, and change where they wait for each other. It
// cannot reproduce a GPU's speed, nor details of its arithmetic and memory model.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __shared__ thread_local

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  // As in CUDA, numbers convert to grids implicitly.
  dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}  // NOLINT
};
extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
using cudaStream_t = struct CUstream_st*;

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

inline float atomicAdd(float* at, float x) { return std::atomic_ref(*at).fetch_add(x); }

namespace dt::test {

// Appends work to the stream; with a null stream the work is done at once.
void Give(cudaStream_t stream, std::function<void()> work);

// Calls body(arguments) once for each thread of the grid. Ends the program if threads wait for each
// other forever.
void RunGrid(const cudaLaunchConfig_t& config, void (*body)(const void*), const void* arguments);
// The value given by thread `lane` of the same warp.
uint64_t FromLane(uint64_t own, unsigned lane);

}  // namespace dt::test

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               const Arguments&... arguments) {
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
  };
  const Call call{kernel, std::tuple<Parameters...>(arguments...)};
  dt::test::Give(config->stream, [config = *config, call] {
    dt::test::RunGrid(
        config,
        [](const void* opaque) {
          const auto& own = *static_cast<const Call*>(opaque);
          std::apply(own.kernel, own.arguments);
        },
        &call);
  });
  return cudaSuccess;
}

void __syncthreads();
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  uint64_t bits = 0;
  static_assert(sizeof(T) <= sizeof(bits));
  std::memcpy(&bits, &value, sizeof(T));
  bits = dt::test::FromLane(bits, (threadIdx.x % 32) ^ static_cast<unsigned>(mask));
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
inline uint32_t __umulhi(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(uint64_t{a} * b >> 32);
}
inline float normcdff(float x) { return 0.5f * std::erfc(-x * 0.70710678f); }

inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return "an error"; }
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  dt::test::Give(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}
