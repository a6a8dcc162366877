// A CUDA library with three devices of 1 MiB: device 0 works, 1 computes wrong sums, 2 cannot run
// the code of this build. An event completes at the third query. A copy of 13 bytes breaks its
// stream; a copy of 14 bytes breaks the event after it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "common/base/mutex.h"
#include "common/device/cuda_table.h"

namespace dt {

struct CudaStream {
  const char* broken = nullptr;
};
struct CudaEvent {
  const char* broken = nullptr;
  int looks = 0;
  bool never = true;  // True until the event is recorded.
};
struct CudaGraph {};

namespace {

constexpr size_t kMemory = 1 << 20;
constexpr CudaError kNoMemory = "out of memory";

Mutex mutex;
std::unordered_map<void*, size_t> blocks DT_GUARDED_BY(mutex);
size_t used DT_GUARDED_BY(mutex) = 0;

CudaError CountDevices(int32_t* count) {
  *count = 3;
  return nullptr;
}

CudaError Describe(int32_t device, CudaDevice* out) {
  if (device < 0 || device > 2) return "invalid device ordinal";
  std::snprintf(out->name, sizeof(out->name), "fake card %d", device);
  out->memory_bytes = kMemory;
  return nullptr;
}

CudaError AddF32(int32_t device, const float* a, const float* b, float* out, size_t n) {
  if (device == 2) return "no kernel image is available";
  for (size_t i = 0; i < n; ++i) out[i] = a[i] + (device == 0 ? b[i] : 0);
  return nullptr;
}

CudaError Allocate(int32_t, size_t bytes, void** out) {
  MutexLock lock(mutex);
  if (bytes > kMemory - used) return kNoMemory;
  *out = std::malloc(bytes);
  blocks.emplace(*out, bytes);
  used += bytes;
  return nullptr;
}

CudaError Free(int32_t, void* memory) {
  MutexLock lock(mutex);
  used -= blocks.at(memory);
  blocks.erase(memory);
  std::free(memory);
  return nullptr;
}

CudaError AllocatePinned(int32_t, size_t bytes, void** out) {
  if (bytes > kMemory) return "too much to pin";
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return nullptr;
}

CudaError FreePinned(void* memory) {
  std::free(memory);
  return nullptr;
}

CudaError MemoryInfo(int32_t, uint64_t* free_bytes, uint64_t* total_bytes) {
  MutexLock lock(mutex);
  *free_bytes = kMemory - used;
  *total_bytes = kMemory;
  return nullptr;
}

CudaError MakeStream(int32_t, CudaStream** out) {
  *out = std::make_unique<CudaStream>().release();
  return nullptr;
}
void DestroyStream(CudaStream* stream) { delete stream; }

CudaError Copy(CudaStream* stream, void* to, const void* from, size_t bytes) {
  if (bytes == 13) return "invalid argument";
  if (bytes == 14) stream->broken = "an illegal memory access was encountered";
  std::memmove(to, from, bytes);
  return nullptr;
}

CudaError MakeEvent(int32_t, CudaEvent** out) {
  *out = std::make_unique<CudaEvent>().release();
  return nullptr;
}
void DestroyEvent(CudaEvent* event) { delete event; }

CudaError Record(CudaStream* stream, CudaEvent* event) {
  *event = {.broken = stream->broken, .looks = 0, .never = false};
  return nullptr;
}
CudaError WaitFor(CudaStream*, CudaEvent*) { return nullptr; }
CudaError Query(CudaEvent* event, bool* done) {
  *done = !event->never && ++event->looks >= 3;
  return event->broken;
}

}  // namespace
}  // namespace dt

extern "C" bool DtFillCudaTable(uint32_t version, dt::CudaTable* table) {
  *table = {.version = version,
            .count_devices = dt::CountDevices,
            .describe = dt::Describe,
            .add_f32 = dt::AddF32,
            .allocate = dt::Allocate,
            .free = dt::Free,
            .allocate_pinned = dt::AllocatePinned,
            .free_pinned = dt::FreePinned,
            .memory_info = dt::MemoryInfo,
            .make_stream = dt::MakeStream,
            .destroy_stream = dt::DestroyStream,
            .copy_to_device = dt::Copy,
            .copy_to_host = dt::Copy,
            .copy_on_device = dt::Copy,
            .record = dt::Record,
            .wait_for = dt::WaitFor,
            .make_event = dt::MakeEvent,
            .destroy_event = dt::DestroyEvent,
            .query = dt::Query};
  return true;
}
