#include "common/net/shm_arena.h"

#include <iterator>
#include <map>
#include <mutex>
#include <sys/resource.h>

#include "common/base/text.h"

namespace dt {
namespace {

constexpr size_t kAlignment = 64;
// Each connection maps the arena of its peer.
constexpr size_t kAddressesMin = 64 * kArenaBytes;

size_t Rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Arena {
  std::mutex mutex;
  SharedMemory memory;                     // Set before `base`.
  std::atomic<std::byte*> base = nullptr;  // Set once.
  std::map<size_t, size_t> free;           // Offset and bytes; no two touch. Guarded by mutex.
  std::map<pid_t, std::weak_ptr<std::atomic<size_t>>> lent;  // Guarded by mutex.
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
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur < kAddressesMin) {
    return Unavailable("it takes addresses of {}, and this process may have {} (ulimit -v)",
                       BytesText(kAddressesMin), BytesText(addresses.rlim_cur));
  }
  DT_TRY(arena.memory,
         SharedMemory::Create("dovetail-frames", kArenaBytes, SharedMemory::Access::kRead));
  DT_TRY_STATUS(arena.memory.ReadOnlyFd().status());
  arena.free[0] = kArenaBytes;
  arena.base.store(arena.memory.data(), std::memory_order_release);
  return OkStatus();
}

bool ShmArena::is_open() { return TheArena().base.load(std::memory_order_acquire) != nullptr; }

// The first that fits: what was touched before is used again before other pages are.
std::byte* ShmArena::Allocate(size_t bytes) {
  Arena& arena = TheArena();
  const size_t size = Rounded(bytes);
  std::lock_guard lock(arena.mutex);
  for (auto at = arena.free.begin(); at != arena.free.end(); ++at) {
    const auto [offset, there] = *at;
    if (there < size) continue;
    arena.free.erase(at);
    if (there > size) arena.free[offset + size] = there - size;
    return arena.memory.data() + offset;
  }
  return nullptr;
}

void ShmArena::Free(std::byte* memory, size_t bytes) {
  Arena& arena = TheArena();
  std::lock_guard lock(arena.mutex);
  size_t begin = static_cast<size_t>(memory - arena.memory.data());
  size_t end = begin + Rounded(bytes);
  const auto behind = arena.free.lower_bound(begin);
  if (behind != arena.free.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == begin) {
      begin = before->first;
      arena.free.erase(before);
    }
  }
  if (behind != arena.free.end() && behind->first == end) {
    end += behind->second;
    arena.free.erase(behind);
  }
  arena.free[begin] = end - begin;
}

std::optional<size_t> ShmArena::OffsetOf(std::span<const std::byte> bytes) {
  const std::byte* const base = TheArena().base.load(std::memory_order_acquire);
  if (base == nullptr || bytes.data() < base || bytes.data() >= base + kArenaBytes) return {};
  return static_cast<size_t>(bytes.data() - base);
}

std::shared_ptr<std::atomic<size_t>> ShmArena::LentTo(pid_t peer) {
  Arena& arena = TheArena();
  std::lock_guard lock(arena.mutex);
  std::erase_if(arena.lent, [](const auto& of) { return of.second.expired(); });
  std::shared_ptr<std::atomic<size_t>> lent = arena.lent[peer].lock();
  if (lent == nullptr || peer == 0) {
    arena.lent[peer] = lent = std::make_shared<std::atomic<size_t>>(0);
  }
  return lent;
}

Result<OwnedFd> ShmArena::ReadOnlyFd() { return TheArena().memory.ReadOnlyFd(); }

}  // namespace dt
