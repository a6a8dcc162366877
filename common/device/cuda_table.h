// What libdovetail_cuda.so offers: one C function that fills a table of functions. Both sides are
// compiled from this file; the version tells a program from a library of another build.
//
// An error is a sentence in static memory; nullptr is success. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dt {

inline constexpr uint32_t kCudaTableVersion = 1;
inline constexpr const char* kCudaTableSymbol = "DtFillCudaTable";

using CudaError = const char*;

struct CudaDevice {
  char name[256] = {};  // Ends with a zero.
  uint64_t memory_bytes = 0;
  int32_t major = 0, minor = 0;  // Compute capability.
};

struct CudaTable {
  uint32_t version = 0;
  CudaError (*count_devices)(int32_t* count) = nullptr;
  CudaError (*describe)(int32_t device, CudaDevice* out) = nullptr;
  // out[i] = a[i] + b[i] for i < n, computed on the card; all three lie in host memory.
  CudaError (*add_f32)(int32_t device, const float* a, const float* b, float* out,
                       size_t n) = nullptr;
};

// The type of the library's only entry. False: it was built for another version of the table.
using FillCudaTable = bool (*)(uint32_t version, CudaTable* table);

}  // namespace dt
