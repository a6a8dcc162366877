#include "common/net/shm_arena.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace dt {
namespace {

constexpr size_t kAlignment = 64;

struct Arena {
  std::mutex mutex;     // Of opening.
  SharedMemory memory;  // Set before `base`.
  std::atomic<std::byte*> base = nullptr;
  std::atomic<size_t> used = 0;
};

// Never destroyed: frames are freed by threads that outlive main.
Arena& TheArena() {
  static Arena& arena = *std::make_unique<Arena>().release();
  return arena;
}

}  // namespace

Status ShmArena::Open() {
  Arena& arena = TheArena();
  std::lock_guard lock(arena.mutex);
  if (arena.base.load() != nullptr) return OkStatus();
  DT_TRY(arena.memory, SharedMemory::Create("dovetail-frames", kArenaBytes));
  DT_TRY_STATUS(arena.memory.ReadOnlyFd().status());
  arena.base.store(arena.memory.data(), std::memory_order_release);
  return OkStatus();
}

bool ShmArena::is_open() { return TheArena().base.load(std::memory_order_acquire) != nullptr; }

std::byte* ShmArena::Allocate(size_t bytes) {
  Arena& arena = TheArena();
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  size_t at = arena.used.load(std::memory_order_relaxed);
  do {
    if (rounded > kArenaBytes - at) return nullptr;
  } while (!arena.used.compare_exchange_weak(at, at + rounded, std::memory_order_relaxed));
  return arena.base.load(std::memory_order_acquire) + at;
}

void ShmArena::DropPages(std::byte* memory, size_t bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(memory) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_REMOVE);
}

std::optional<size_t> ShmArena::OffsetOf(std::span<const std::byte> bytes) {
  const std::byte* const base = TheArena().base.load(std::memory_order_acquire);
  if (base == nullptr || bytes.data() < base || bytes.data() >= base + kArenaBytes) return {};
  return static_cast<size_t>(bytes.data() - base);
}

Result<OwnedFd> ShmArena::ReadOnlyFd() { return TheArena().memory.ReadOnlyFd(); }

}  // namespace dt
