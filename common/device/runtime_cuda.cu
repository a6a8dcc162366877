// The part of the table that belongs to no operator: cards, memory, streams, events and graphs.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "common/device/cuda_stream.cuh"

namespace dt {

// Destructors clear CUDA's last error: the user of a broken card has already been told.
CudaStream::~CudaStream() {
  cudaSetDevice(device);
  if (stream != nullptr) {
    cudaStreamSynchronize(stream);  // Running work may use the workspace.
    cudaStreamDestroy(stream);
  }
  if (blas != nullptr) cublasLtDestroy(blas);
  cudaFree(workspace);
  cudaGetLastError();
}

struct CudaEvent {
  explicit CudaEvent(int32_t on) : device(on) {}
  ~CudaEvent() {
    cudaSetDevice(device);
    if (event != nullptr) cudaEventDestroy(event);
    cudaGetLastError();
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  const int32_t device;
  cudaEvent_t event = nullptr;
};

struct CudaGraph {
  explicit CudaGraph(cudaGraphExec_t instance) : work(instance) {}
  ~CudaGraph() {
    cudaGraphExecDestroy(work);
    cudaGetLastError();
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  const cudaGraphExec_t work;
};

namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kBlocksMax = 4096;
// The size that cuBLASLt's documentation recommends for Hopper.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;
constexpr size_t kPageBytes = 4096;
constexpr CudaError kNoHostMemory = "the machine has no memory left";

// ------------------------------------------------------------------ cards

// Device memory that is freed at the end of its scope.
class DeviceFloats {
 public:
  explicit DeviceFloats(size_t count) : error_(cudaMalloc(&data_, count * sizeof(float))) {}
  ~DeviceFloats() {
    if (error_ == cudaSuccess) cudaFree(data_);
  }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;

  cudaError_t error() const { return error_; }
  float* data() const { return data_; }

 private:
  float* data_ = nullptr;
  cudaError_t error_;
};

__global__ void AddKernel(const float* a, const float* b, float* out, size_t n) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    out[i] = a[i] + b[i];
  }
}

cudaError_t AddOn(int32_t device, const float* a, const float* b, float* out, size_t n) {
  if (cudaError_t e = cudaSetDevice(device); e != cudaSuccess) return e;
  const DeviceFloats left(n), right(n), sum(n);
  for (const DeviceFloats* buffer : {&left, &right, &sum}) {
    if (buffer->error() != cudaSuccess) return buffer->error();
  }
  const size_t bytes = n * sizeof(float);
  if (cudaError_t e = cudaMemcpy(left.data(), a, bytes, cudaMemcpyHostToDevice)) return e;
  if (cudaError_t e = cudaMemcpy(right.data(), b, bytes, cudaMemcpyHostToDevice)) return e;
  const size_t blocks = (n + kThreads - 1) / kThreads;
  AddKernel<<<static_cast<uint32_t>(blocks < kBlocksMax ? blocks : kBlocksMax), kThreads>>>(
      left.data(), right.data(), sum.data(), n);
  if (cudaError_t e = cudaGetLastError()) return e;
  return cudaMemcpy(out, sum.data(), bytes, cudaMemcpyDeviceToHost);  // Waits for the kernel.
}

CudaError CountDevices(int32_t* count) {
  int found = 0;
  const cudaError_t error = cudaGetDeviceCount(&found);
  *count = error == cudaSuccess ? found : 0;
  return TextOf(error);
}

CudaError Describe(int32_t device, CudaDevice* out) {
  cudaDeviceProp properties{};
  if (cudaError_t e = cudaGetDeviceProperties(&properties, device)) return TextOf(e);
  std::snprintf(out->name, sizeof(out->name), "%s", properties.name);
  out->memory_bytes = properties.totalGlobalMem;
  out->major = properties.major;
  out->minor = properties.minor;
  static_assert(sizeof(out->uuid) == sizeof(properties.uuid));
  std::memcpy(out->uuid, &properties.uuid, sizeof(out->uuid));
  return nullptr;
}

CudaError AddF32(int32_t device, const float* a, const float* b, float* out, size_t n) {
  // A grid must not be empty.
  return n == 0 ? nullptr : TextOf(AddOn(device, a, b, out, n));
}

// ------------------------------------------------------------------ memory

CudaError Allocate(int32_t device, size_t bytes, void** out) {
  if (CudaError e = TextOf(cudaSetDevice(device))) return e;
  return TextOf(cudaMalloc(out, bytes == 0 ? 1 : bytes));
}

CudaError Free(int32_t device, void* memory) {
  if (CudaError e = TextOf(cudaSetDevice(device))) return e;
  return TextOf(cudaFree(memory));
}

// Allocates ordinary memory and then pins it, because cudaHostAlloc guarantees no alignment.
CudaError AllocatePinned(int32_t device, size_t bytes, void** out) {
  if (CudaError e = TextOf(cudaSetDevice(device))) return e;
  const size_t pages = bytes == 0 ? 1 : (bytes + kPageBytes - 1) / kPageBytes;
  void* const memory = std::aligned_alloc(kPageBytes, pages * kPageBytes);
  if (memory == nullptr) return kNoHostMemory;
  if (cudaError_t e = cudaHostRegister(memory, pages * kPageBytes, cudaHostRegisterPortable)) {
    std::free(memory);
    return TextOf(e);
  }
  *out = memory;
  return nullptr;
}

CudaError FreePinned(void* memory) {
  if (memory == nullptr) return nullptr;
  const CudaError error = TextOf(cudaHostUnregister(memory));
  // Memory that is still pinned must not be reused.
  if (error == nullptr) std::free(memory);
  return error;
}

CudaError MemoryInfo(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
  if (CudaError e = TextOf(cudaSetDevice(device))) return e;
  size_t free = 0, total = 0;
  if (CudaError e = TextOf(cudaMemGetInfo(&free, &total))) return e;
  *free_bytes = free;
  *total_bytes = total;
  return nullptr;
}

// ------------------------------------------------------------------ streams

CudaError MakeStream(int32_t device, CudaStream** out) {
  if (CudaError e = TextOf(cudaSetDevice(device))) return e;
  auto made = std::make_unique<CudaStream>(device);
  if (CudaError e = TextOf(cudaStreamCreateWithFlags(&made->stream, cudaStreamNonBlocking))) {
    return e;
  }
  if (CudaError e = TextOf(cublasLtCreate(&made->blas))) return e;
  if (CudaError e = TextOf(cudaMalloc(&made->workspace, kWorkspaceBytes))) return e;
  made->workspace_bytes = kWorkspaceBytes;
  *out = made.release();
  return nullptr;
}

void DestroyStream(CudaStream* stream) { delete stream; }

CudaError Copy(CudaStream* stream, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return nullptr;
  return TextOf(cudaMemcpyAsync(to, from, bytes, kind, LaunchOn(*stream)));
}
CudaError CopyToDevice(CudaStream* stream, void* to, const void* from, size_t bytes) {
  return Copy(stream, to, from, bytes, cudaMemcpyHostToDevice);
}
CudaError CopyToHost(CudaStream* stream, void* to, const void* from, size_t bytes) {
  return Copy(stream, to, from, bytes, cudaMemcpyDeviceToHost);
}
CudaError CopyOnDevice(CudaStream* stream, void* to, const void* from, size_t bytes) {
  return Copy(stream, to, from, bytes, cudaMemcpyDeviceToDevice);
}

CudaError CopyRowsOnDevice(CudaStream* stream, const CudaRows& copy) {
  if (copy.bytes == 0 || copy.rows == 0) return nullptr;
  return TextOf(cudaMemcpy2DAsync(copy.to, copy.to_pitch, copy.from, copy.from_pitch, copy.bytes,
                                  copy.rows, cudaMemcpyDeviceToDevice, LaunchOn(*stream)));
}

// ------------------------------------------------------------------ events

CudaError MakeEvent(int32_t device, CudaEvent** out) {
  if (CudaError e = TextOf(cudaSetDevice(device))) return e;
  auto made = std::make_unique<CudaEvent>(device);
  if (CudaError e = TextOf(cudaEventCreateWithFlags(&made->event, cudaEventDisableTiming))) {
    return e;
  }
  *out = made.release();
  return nullptr;
}

void DestroyEvent(CudaEvent* event) { delete event; }

CudaError Record(CudaStream* stream, CudaEvent* event) {
  return TextOf(cudaEventRecord(event->event, LaunchOn(*stream)));
}

CudaError WaitFor(CudaStream* stream, CudaEvent* event) {
  return TextOf(cudaStreamWaitEvent(LaunchOn(*stream), event->event, 0));
}

CudaError Query(CudaEvent* event, bool* done) {
  const cudaError_t error = cudaEventQuery(event->event);
  *done = error == cudaSuccess;
  if (error != cudaErrorNotReady) return TextOf(error);
  cudaGetLastError();  // CUDA reports cudaErrorNotReady as an error; clear it.
  return nullptr;
}

// ------------------------------------------------------------------ graphs

// Relaxed mode, because a kernel's first launch loads its code, which the stricter modes refuse.
CudaError BeginCapture(CudaStream* stream) {
  return TextOf(cudaStreamBeginCapture(LaunchOn(*stream), cudaStreamCaptureModeRelaxed));
}

CudaError EndCapture(CudaStream* stream, CudaGraph** out) {
  cudaGraph_t captured = nullptr;
  if (CudaError e = TextOf(cudaStreamEndCapture(LaunchOn(*stream), &captured))) return e;
  cudaGraphExec_t work = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&work, captured, 0);
  cudaGraphDestroy(captured);
  if (error != cudaSuccess) return TextOf(error);
  *out = std::make_unique<CudaGraph>(work).release();
  return nullptr;
}

void DestroyGraph(CudaGraph* graph) { delete graph; }

CudaError LaunchGraph(CudaStream* stream, CudaGraph* graph) {
  return TextOf(cudaGraphLaunch(graph->work, LaunchOn(*stream)));
}

}  // namespace

void FillCudaRuntime(CudaTable* table) {
  *table = {.version = kCudaTableVersion,
            .count_devices = CountDevices,
            .describe = Describe,
            .add_f32 = AddF32,
            .allocate = Allocate,
            .free = Free,
            .allocate_pinned = AllocatePinned,
            .free_pinned = FreePinned,
            .memory_info = MemoryInfo,
            .make_stream = MakeStream,
            .destroy_stream = DestroyStream,
            .copy_to_device = CopyToDevice,
            .copy_to_host = CopyToHost,
            .copy_on_device = CopyOnDevice,
            .copy_rows_on_device = CopyRowsOnDevice,
            .record = Record,
            .wait_for = WaitFor,
            .make_event = MakeEvent,
            .destroy_event = DestroyEvent,
            .query = Query,
            .begin_capture = BeginCapture,
            .end_capture = EndCapture,
            .launch_graph = LaunchGraph,
            .destroy_graph = DestroyGraph};
}

}  // namespace dt
