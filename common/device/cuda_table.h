// The interface of libdovetail_cuda.so: one C function that fills a table of functions. Program and
// library are both compiled with this file; the version detects a library of another build. Plain
// data only.
//
// An error is a sentence in static or thread-local memory, valid until the thread's next call;
// nullptr means success. All functions may be called on any thread, unless noted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/device/nccl_table.h"

namespace dt {

inline constexpr uint32_t kCudaTableVersion = 4;
inline constexpr const char* kCudaTableSymbol = "DtFillCudaTable";

struct CudaDevice {
  char name[256] = {};  // Zero-terminated.
  uint64_t memory_bytes = 0;
  int32_t major = 0, minor = 0;  // Compute capability.
  char uuid[16] = {};            // Differs between any two cards.
};

// CudaStream is owned by the library: stream, cuBLASLt handle, workspace.
struct CudaEvent;
struct CudaGraph;  // Captured and instantiated.

inline constexpr size_t kCudaRankMax = 6;
// Maximum number of symbols; a replicated table uses three.
inline constexpr size_t kCudaSymbolsMax = 1024;

// The values that change from step to step: dt::RunInfo and the sizes of the symbols (index 0 is
// the constant 1, index 1 is B). They are in device memory, so that captured work stays valid.
struct CudaRun {
  uint64_t seed = 0, step = 0, first_sample = 0;
  uint64_t update_step = 0;  // RunInfo::update_step().
  uint32_t step_samples = 1;
  float lr_scale = 1;
  int32_t training = 1;
  int64_t sizes[kCudaSymbolsMax] = {};
};

// A tensor, row-major and densely packed. Dimension i is times[i] · sizes[symbol[i]]; kernels read
// sizes from the CudaRun. `extent` is the size that the host knows at the launch: exact for
// constants and B, the capacity for other symbols.
inline constexpr uint8_t kCudaF32 = 0, kCudaU32 = 2, kCudaBf16 = 3;  // Values of dt::DType.
struct CudaTensor {
  void* data = nullptr;
  uint8_t dtype = 0;  // A dt::DType.
  uint8_t rank = 0;
  int32_t symbol[kCudaRankMax] = {};
  int64_t times[kCudaRankMax] = {};
  int64_t extent[kCudaRankMax] = {};
};

// An attribute of the node; `node` is an additional one with the node's name. Made by
// ops/cuda/call.h.
struct CudaAttr {
  enum class Kind : uint8_t { kBool, kInt, kFloat, kText, kInts };
  const char* name = nullptr;
  Kind kind = Kind::kInt;
  int64_t number = 0;  // For kBool and kInt the value; for kText its HashString.
  double real = 0;
  const char* text = nullptr;
  const int64_t* ints = nullptr;
  size_t count = 0;
};

// The arguments of one node. It lives as long as the graph that captured it.
struct CudaCall {
  const CudaTensor* inputs = nullptr;
  size_t input_count = 0;
  const CudaTensor* outputs = nullptr;
  size_t output_count = 0;
  const CudaAttr* attrs = nullptr;
  size_t attr_count = 0;
  const CudaRun* run = nullptr;  // Device memory.
  uint64_t first_sample = 0;     // Position of the node's first sample in the slice.
  void* scratch = nullptr;       // Device memory of the size that scratch_bytes returned.
  CudaStream* stream = nullptr;
};

struct CudaKernel {
  const char* op = nullptr;
  CudaError (*launch)(const CudaCall& call) = nullptr;  // Does not wait for the kernel.
  // Computed from the extents; nullptr: none.
  size_t (*scratch_bytes)(const CudaCall& call) = nullptr;
  // Returns false if the call's arguments depend on sizes other than B: then every step launches it
  // again.
  bool (*can_capture)(const CudaCall& call) = nullptr;  // nullptr: can always be captured.
};

struct CudaRows {
  void* to = nullptr;
  size_t to_pitch = 0;
  const void* from = nullptr;
  size_t from_pitch = 0;
  size_t bytes = 0, rows = 0;
};

struct CudaTable {
  uint32_t version = 0;
  CudaError (*count_devices)(int32_t* count) = nullptr;
  CudaError (*describe)(int32_t device, CudaDevice* out) = nullptr;
  // out[i] = a[i] + b[i] for i < n, computed on the card; all three arrays are in host memory.
  CudaError (*add_f32)(int32_t device, const float* a, const float* b, float* out,
                       size_t n) = nullptr;

  // Memory.
  CudaError (*allocate)(int32_t device, size_t bytes, void** out) = nullptr;
  CudaError (*free)(int32_t device, void* memory) = nullptr;
  CudaError (*allocate_pinned)(int32_t device, size_t bytes, void** out) = nullptr;
  CudaError (*free_pinned)(void* memory) = nullptr;
  CudaError (*memory_info)(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) = nullptr;

  // Each stream is used by one thread at a time.
  CudaError (*make_stream)(int32_t device, CudaStream** out) = nullptr;
  void (*destroy_stream)(CudaStream* stream) = nullptr;
  CudaError (*copy_to_device)(CudaStream* stream, void* to, const void* from,
                              size_t bytes) = nullptr;
  CudaError (*copy_to_host)(CudaStream* stream, void* to, const void* from, size_t bytes) = nullptr;
  CudaError (*copy_on_device)(CudaStream* stream, void* to, const void* from,
                              size_t bytes) = nullptr;
  // Copies `rows` pieces of `bytes`, which are so many bytes apart.
  CudaError (*copy_rows_on_device)(CudaStream* stream, const CudaRows& copy) = nullptr;
  CudaError (*record)(CudaStream* stream, CudaEvent* event) = nullptr;
  CudaError (*wait_for)(CudaStream* stream, CudaEvent* event) = nullptr;
  CudaError (*make_event)(int32_t device, CudaEvent** out) = nullptr;
  void (*destroy_event)(CudaEvent* event) = nullptr;
  CudaError (*query)(CudaEvent* event, bool* done) = nullptr;

  // Work launched between begin_capture and end_capture becomes a graph, which runs only in
  // launch_graph.
  CudaError (*begin_capture)(CudaStream* stream) = nullptr;
  CudaError (*end_capture)(CudaStream* stream, CudaGraph** out) = nullptr;
  CudaError (*launch_graph)(CudaStream* stream, CudaGraph* graph) = nullptr;
  void (*destroy_graph)(CudaGraph* graph) = nullptr;

  NcclTable nccl = {};

  // Returns nullptr if the operator has no CUDA kernel.
  const CudaKernel* (*find_kernel)(const char* op) = nullptr;
};

// The type of the library's only entry point. Returns false if the library was built for another
// version of the table.
using FillCudaTable = bool (*)(uint32_t version, CudaTable* table);

}  // namespace dt
